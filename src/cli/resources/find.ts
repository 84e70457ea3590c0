/** Finds resources by the names that people know them by. */
import type { Client } from '#client/client.ts'
import type { Schemas } from '#client/generated/schema.ts'
import { nearestName } from '#lib/nearest-name.ts'
import { UserError } from '#lib/user-error.ts'
import { isUuid } from '#lib/uuid.ts'

/** Resources that commands name. A view has a version for each id: `view` is the newest that is not archived. */
export type Named = 'endpoint' | 'destination' | 'secret' | 'view' | 'published view'

/** Returns the id of a resource. A name costs calls, an id does not. Throws a UserError. */
export async function findId(client: Client, kind: Named, nameOrId: string): Promise<string> {
  if (isUuid(nameOrId)) return nameOrId.toLowerCase()
  switch (kind) {
    case 'endpoint':
      return (await findEndpoint(client, nameOrId)).id
    case 'destination':
      return (await findNamed(client.listDestinations(), kind, nameOrId)).id
    case 'secret':
      return (await findNamed(client.listSecrets(), kind, nameOrId)).id
    case 'view':
      return (await findVersion(client, nameOrId, ['published', 'draft'])).id
    case 'published view':
      return (await findVersion(client, nameOrId, ['published'])).id
  }
}

/** Finds an endpoint by its name or id. Throws a UserError. */
export function findEndpoint(client: Client, nameOrId: string): Promise<Schemas['Endpoint']> {
  return findNamed(client.listEndpoints(), 'endpoint', nameOrId)
}

async function findNamed<Item extends { readonly id: string; readonly name: string }>(
  items: AsyncIterable<Item>,
  kind: Named,
  nameOrId: string,
): Promise<Item> {
  const names: string[] = []
  const found: Item[] = []
  for await (const item of items) {
    if (item.id === nameOrId.toLowerCase()) return item
    if (item.name === nameOrId) found.push(item)
    names.push(item.name)
  }
  const [first, ...others] = found
  if (first !== undefined && others.length === 0) return first
  if (first !== undefined) throw new UserError(`several ${kind}s have the name ${nameOrId}: use the id, which list shows`)
  throw missing(kind, nameOrId, names)
}

async function findVersion(client: Client, name: string, statuses: readonly string[]): Promise<Schemas['View']> {
  const all = await Array.fromAsync(client.listViews({ status: 'all' }))
  const versions = all.filter((view) => view.name === name).toSorted((a, b) => b.version - a.version)
  const found = versions.find(({ status }) => statuses.includes(status))
  if (found !== undefined) return found
  const [newest] = versions
  if (newest !== undefined)
    throw new UserError(
      `the view ${name} has no version that is ${statuses.join(' or ')}: version ${newest.version} is ${newest.status}`,
    )
  const names = all.map((view) => view.name)
  throw missing('view', name, names)
}

function missing(kind: Named, name: string, known: readonly string[]): UserError {
  const nearest = nearestName(name, known)
  return new UserError(`there is no ${kind} ${name}${nearest === undefined ? '' : `; did you mean ${nearest}?`}`)
}
