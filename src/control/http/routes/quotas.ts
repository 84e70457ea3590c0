import type { FastifyPluginCallbackZod } from 'fastify-type-provider-zod'
import { QuotaUse } from '#model/quota.ts'
import type { Quotas } from '../../resources/quotas.ts'
import { resource } from './resource.ts'

export function quotaRoutes(quotas: Quotas): FastifyPluginCallbackZod {
  return resource('Quotas', (operation) => {
    operation('GET /quotas', 'getQuotas', 'metrics', {
      summary: 'Get the quotas of the account and how much of them is used',
      response: { 200: QuotaUse },
      run: (request) => quotas.get(request.principal.account_id),
    })
  })
}
