import type { FastifyPluginCallbackZod } from 'fastify-type-provider-zod'
import { ReceiptOutcome } from '#model/receipt.ts'
import type { Receipts } from '../../resources/receipts.ts'
import { resource } from './resource.ts'

export function receiptRoutes(receipts: Receipts): FastifyPluginCallbackZod {
  return resource('Endpoints', (operation) => {
    operation('GET /endpoints/:id/receipts/:receipt_id', 'getReceipt', 'metrics', {
      summary: 'Get what became of records that were acknowledged: delivered, waiting or lost; also of a deleted endpoint',
      response: { 200: ReceiptOutcome },
      run: ({ principal, params }) => receipts.get(principal, params.id, params.receipt_id),
    })
  })
}
