import type { FastifyPluginCallbackZod } from 'fastify-type-provider-zod'
import { InstallationLossesQuery, Loss, LossesQuery } from '#model/loss.ts'
import { pageOf } from '#model/page.ts'
import type { Losses } from '../../resources/losses.ts'
import { problem } from '../openapi/openapi.ts'
import { resource } from './resource.ts'

const recovered = problem('the loss is recovered: there is nothing to confirm')

export function lossRoutes(losses: Losses): FastifyPluginCallbackZod {
  return resource('Losses', (operation) => {
    operation('GET /losses', 'listLosses', 'metrics', {
      summary: 'List what was acknowledged and not delivered when nodes were removed, newest first',
      query: LossesQuery,
      response: { 200: pageOf(Loss) },
      run: (request) => losses.list(request.principal, request.query),
    })

    operation('POST /losses/:id/confirm', 'confirmLoss', 'admin', {
      summary: 'Accept a loss: it is no longer a reason in the status of its endpoint',
      response: { 200: Loss, 409: recovered },
      run: (request) => losses.confirm(request.principal, request.params.id),
    })
  })
}

/** The operator's view of the losses of all accounts. */
export function installationLossRoutes(losses: Losses): FastifyPluginCallbackZod {
  return resource('Losses', (operation) => {
    operation('GET /installation/losses', 'listInstallationLosses', 'operator', {
      summary: 'List what was acknowledged and not delivered when nodes were removed, of all accounts, newest first',
      query: InstallationLossesQuery,
      response: { 200: pageOf(Loss) },
      run: (request) => losses.listAll(request.query),
    })

    operation('POST /installation/losses/:id/confirm', 'confirmInstallationLoss', 'operator', {
      summary: 'Accept a loss for its account, such as a suspended one',
      description: 'The audit trail of the account has it, with the actor `operator`.',
      response: { 200: Loss, 404: problem('there is no such loss'), 409: recovered },
      run: (request) => losses.confirmForAccount(request.params.id, 'operator'),
    })
  })
}
