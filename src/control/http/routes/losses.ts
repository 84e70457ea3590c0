import type { FastifyPluginCallbackZod } from 'fastify-type-provider-zod'
import { Loss, LossesQuery } from '#model/loss.ts'
import { pageOf } from '#model/page.ts'
import type { Losses } from '../../resources/losses.ts'
import { resource } from './resource.ts'

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
      response: { 200: Loss },
      run: (request) => losses.confirm(request.principal, request.params.id),
    })
  })
}
