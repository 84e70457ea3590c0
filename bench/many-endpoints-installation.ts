/** A new data directory whose database has many endpoints, with raw Parquet and one view each. Nothing is started yet. */
import { Agent, request } from 'node:http'
import { dataPaths } from '#config/data-paths.ts'
import { prepareDatabase } from '#store/migrations/prepare.ts'
import { openStore } from '#store/store.ts'
import { Installation } from '../test/support/installation.ts'
import { fill } from '../tools/simulate-scale/fill.ts'

/** An endpoint, and where and with which key to send to it. */
export type Target = { readonly id: string; readonly url: string; readonly apiKey: string }

const endpointsPerAccount = 100
const agent = new Agent({ keepAlive: true, maxSockets: 64 })
const event = Buffer.from('{"column_0":"a","column_1":1,"column_2":"2026-01-01T00:00:00Z"}\n')

export async function createManyEndpoints(
  count: number,
  { segmentMaxAgeSeconds }: { readonly segmentMaxAgeSeconds: number },
): Promise<{ readonly installation: Installation; readonly endpoints: readonly Target[] }> {
  const installation = await Installation.create({ environment: { INLET_LOG_LEVEL: 'error' } })
  const { database } = dataPaths(installation.directory)
  const store = await openStore(database)
  try {
    await prepareDatabase(store, database)
    const accounts = Math.ceil(count / endpointsPerAccount)
    const size = { accounts, endpoints: count, keys: accounts }
    const where = { regions: ['loc'], destinationRegion: 'local' }
    const { endpoints, apiKeys } = await fill(store, { ...size, ...where, segmentMaxAgeSeconds }, () => undefined)
    return {
      installation,
      endpoints: endpoints.map(({ id }, index) => ({
        id,
        url: `${installation.ingestUrl}/v1/ingest?endpoint=${id}`,
        apiKey: apiKeys[index % accounts] ?? '',
      })),
    }
  } finally {
    await store.close()
  }
}

/** Sends one event. Returns whether it was stored. */
export function trickle({ url, apiKey }: Target): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>()
  const headers = { 'x-api-key': apiKey, 'content-type': 'application/x-ndjson', 'content-length': event.length }
  const outgoing = request(url, { method: 'POST', agent, headers }, (response) => {
    response.resume()
    response.on('end', () => resolve(response.statusCode === 202))
    response.on('error', () => resolve(false))
  })
  outgoing.on('error', () => resolve(false))
  outgoing.end(event)
  return promise
}
