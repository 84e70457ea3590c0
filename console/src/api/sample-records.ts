import { client, ok } from './client.ts'

/** How many records a person can look through. */
const limit = 20

/** The latest records that an endpoint delivered, as clients sent them. */
export async function latestRecords(endpoint_id: string): Promise<readonly string[]> {
  const { items } = await ok(
    client.GET('/v1/endpoints/{id}/records', { params: { path: { id: endpoint_id }, query: { limit } } }),
  )
  return whole(items)
}

/** The latest records that a version rejected, as clients sent them. */
export async function latestDeadLetters(view_id: string): Promise<readonly string[]> {
  const { items } = await ok(client.GET('/v1/views/{id}/dlq-records', { params: { path: { id: view_id }, query: { limit } } }))
  return whole(items)
}

type Arrived = { readonly record: string | null; readonly is_cut: boolean }

/** A preview takes neither bytes that are not UTF-8 nor a part of a record. */
function whole(items: readonly Arrived[]): readonly string[] {
  return items.flatMap(({ record, is_cut }) => (record === null || is_cut ? [] : [record]))
}
