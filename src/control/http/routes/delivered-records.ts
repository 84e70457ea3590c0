import type { FastifyReply } from 'fastify'
import type { FastifyPluginCallbackZod } from 'fastify-type-provider-zod'
import {
  DeliveredRecords as Delivered,
  DlqReasons,
  DlqReasonsQuery,
  DlqRecords,
  DlqRecordsQuery,
  RecordsQuery,
} from '#model/delivered-record.ts'
import { previewLimits } from '#model/limits.ts'
import type { DeliveredRecords } from '../../resources/delivered-records.ts'
import { problem } from '../openapi/openapi.ts'
import { RequestShares } from '../requests/request-shares.ts'
import { sendJson, signalDisconnect } from './own-process.ts'
import { resource } from './resource.ts'

const unreadable = problem('the files cannot be read; `detail` says why')

/** Their scope is `query`: records are data of the account, and not its state. */
export function deliveredRecordRoutes(records: DeliveredRecords): FastifyPluginCallbackZod {
  const shares = new RequestShares({ what: 'read records', perAccountMax: previewLimits.perAccountMax })
  return (app, _options, done) => {
    app.register(
      resource('Endpoints', (operation) => {
        operation('GET /endpoints/:id/records', 'listRecords', 'query', {
          summary: 'Show the latest records delivered, from raw Parquet in the bucket: for looking at a few',
          query: RecordsQuery,
          response: { 200: Delivered, 409: unreadable },
          shares,
          run: async ({ principal, params, query }, reply) =>
            sendPayloads(reply, await records.list(principal, params.id, query, signalDisconnect(reply))),
        })
      }),
    )
    app.register(
      resource('Views', (operation) => {
        operation('GET /views/:id/dlq-records', 'listDlqRecords', 'query', {
          summary: 'Show the latest records that a view rejected, from dead letter files in the bucket',
          query: DlqRecordsQuery,
          response: { 200: DlqRecords, 409: unreadable },
          shares,
          run: async ({ principal, params, query }, reply) =>
            sendPayloads(reply, await records.listRejected(principal, params.id, query, signalDisconnect(reply))),
        })
        operation('GET /views/:id/dlq-reasons', 'listDlqReasons', 'query', {
          summary: 'Count why a view rejected records, in its newest dead letter files in the bucket',
          query: DlqReasonsQuery,
          response: { 200: DlqReasons, 409: unreadable },
          shares,
          run: async ({ principal, params, query }, reply) =>
            sendPayloads(reply, await records.listReasons(principal, params.id, query, signalDisconnect(reply))),
        })
      }),
    )
    done()
  }
}

/** No browser keeps payloads. */
function sendPayloads(reply: FastifyReply, json: Uint8Array): FastifyReply {
  return sendJson(reply.header('cache-control', 'no-store'), json)
}
