/** The Inlet that a command calls over HTTP, by its environment. */
import { type Client, createClient } from '#client/client.ts'
import type { Schemas } from '#client/generated/schema.ts'
import { nearestName } from '#lib/nearest-name.ts'
import { UserError } from '#lib/user-error.ts'
import type { CliContext } from './context.ts'

export type Remote = { readonly client: Client; readonly apiKey: string; readonly ingestUrl: string | undefined }

/** Throws a UserError without an API key. */
export async function openRemote(context: CliContext): Promise<Remote> {
  const { INLET_URL: url, INLET_API_KEY: apiKey, INLET_INGEST_URL: ingestUrl } = await context.readEnvironment()
  if (!apiKey) throw new UserError('set INLET_API_KEY to an API key, and INLET_URL to the address of control')
  return { client: createClient({ url: url || 'http://127.0.0.1:8080', apiKey }), apiKey, ingestUrl: ingestUrl || undefined }
}

/** Finds an endpoint by its name or id. Throws a UserError. */
export async function findEndpoint(client: Client, nameOrId: string): Promise<Schemas['Endpoint']> {
  const names: string[] = []
  for await (const endpoint of client.listEndpoints()) {
    if (endpoint.name === nameOrId || endpoint.id === nameOrId.toLowerCase()) return endpoint
    names.push(endpoint.name)
  }
  const nearest = nearestName(nameOrId, names)
  throw new UserError(`there is no endpoint ${nameOrId}${nearest === undefined ? '' : `; did you mean ${nearest}?`}`)
}
