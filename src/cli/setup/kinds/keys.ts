/**
 * API keys.
 *
 * Law: a key never changes, and its secret is in no file. So a declared key is one with this name and these rights: with other rights it is a new
 * key, and the one before stays until it is pruned.
 */
import { ApiError } from '#client/errors.ts'
import { UserError } from '#lib/user-error.ts'
import type { DeclaredKey } from '#model/setup.ts'
import type { Account, ApiKey } from './account.ts'
import { type Applying, type Change, changedByOthers } from './change.ts'
import type { DeclaredSetup } from './declared.ts'
import { areSame, changesOf, type Settings, withoutDefaults } from './fields.ts'
import { missing, type Problems } from './problems.ts'

const defaults: Settings = { endpoints: null, public: false, origins: null }

type KeySettings = Omit<DeclaredKey, 'name'>

function settingsOf({ scopes, endpoints, public: isPublic, origins }: KeySettings): Settings {
  return {
    scopes: scopes.toSorted(),
    endpoints: endpoints === null ? null : endpoints.toSorted(),
    public: isPublic,
    origins: origins === null ? null : origins.toSorted(),
  } satisfies Record<keyof KeySettings, unknown>
}

/** Endpoints that were deleted have no name, and the key opens nothing there. */
function currentOf(key: ApiKey, { endpointNames }: Account): Settings {
  const endpoints = key.endpoint_ids === null ? null : key.endpoint_ids.flatMap((id) => endpointNames.get(id) ?? [])
  return settingsOf({ ...key, endpoints })
}

export function planKeys(setup: DeclaredSetup, account: Account, problems: Problems): readonly Change[] {
  return setup.keys.flatMap(({ value, source }) => {
    const unknown = (value.endpoints ?? []).filter((name) => !setup.names.endpoints.has(name) && !account.endpoints.has(name))
    for (const name of unknown) {
      const at = value.endpoints?.indexOf(name)
      source.report(
        problems,
        `endpoints.${at}`,
        missing('endpoint', name, [...setup.names.endpoints, ...account.endpoints.keys()]),
      )
    }
    if (unknown.length > 0 || account.keys === undefined) return []
    const settings = settingsOf(value)
    const named = account.keys.filter(({ name }) => name === value.name)
    if (named.some((key) => areSame(currentOf(key, account), settings))) return []
    const [before] = named
    const known = new Set(named.map(({ id }) => id))
    return [creationOf(value, settings, before === undefined ? undefined : currentOf(before, account), known)]
  })
}

function creationOf(value: DeclaredKey, settings: Settings, before: Settings | undefined, known: ReadonlySet<string>): Change {
  return {
    ...{ action: 'create', kind: 'keys', name: value.name },
    fields: changesOf(before ?? {}, before === undefined ? withoutDefaults(settings, defaults) : settings),
    notes:
      before === undefined
        ? []
        : ['the rights of a key never change: this is a new key, and the one before works until --prune revokes it'],
    run: (applying) => create(value, known, applying),
  }
}

async function create(declared: DeclaredKey, known: ReadonlySet<string>, applying: Applying): Promise<void> {
  const { name, scopes, endpoints, public: isPublic, origins } = declared
  const { client, ids, keepSecret } = applying
  const endpoint_ids = endpoints === null ? null : endpoints.map((endpoint) => ids.get('endpoints', endpoint))
  const rights = { scopes: [...scopes], endpoint_ids, public: isPublic, origins: origins === null ? null : [...origins] }
  const created = await client.createKey({ name, ...rights }).catch((error: unknown) => recover(error, name, known, applying))
  try {
    await assertFirst(created, known, applying)
    await keepSecret(name, created.api_key)
  } catch (error) {
    // Nobody has the secret of this key.
    await client.revokeKey(created.id)
    throw error
  }
}

/** A key that was created although its response was lost, or is that of a proxy, is of no use, and would look as if it were. Throws the error. */
async function recover(error: unknown, name: string, known: ReadonlySet<string>, { client }: Applying): Promise<never> {
  if (error instanceof ApiError && error.status >= 400 && error.status < 500) throw error
  try {
    for await (const key of client.listKeys())
      if (key.name === name && !known.has(key.id) && key.revoked_at === null && key.last_used_at === null)
        await client.revokeKey(key.id)
  } catch {
    const message = error instanceof Error ? error.message : String(error)
    throw new UserError(
      `${message}; it may exist without anybody having its secret: see inlet keys list, and revoke it before you run this again`,
    )
  }
  throw error
}

/** Names of keys need not differ, so two runs at once could both create one. The older one stays. */
async function assertFirst({ id, name, created_at }: ApiKey, known: ReadonlySet<string>, { client }: Applying): Promise<void> {
  for await (const key of client.listKeys()) {
    if (key.name !== name || key.id === id || key.revoked_at !== null || known.has(key.id)) continue
    if (key.created_at < created_at || (key.created_at === created_at && key.id < id)) throw new UserError(changedByOthers)
  }
}

/** Returns the keys that no entry of the files stands for. */
export function undeclaredKeys({ keys }: DeclaredSetup, account: Account): readonly ApiKey[] {
  return (account.keys ?? []).filter(
    (key) => !keys.some(({ value }) => value.name === key.name && areSame(settingsOf(value), currentOf(key, account))),
  )
}

export function removalOfKey({ id, name, prefix }: ApiKey): Change {
  return {
    ...{
      action: 'delete',
      kind: 'keys',
      name,
      fields: [],
      notes: [`revokes ${prefix}… within seconds: clients that use it are refused, its tokens 15 minutes later`],
    },
    run: async ({ client }) => {
      await client.revokeKey(id)
    },
  }
}

/** A file can have a name once. The newest key of a name is in use, or will be. */
export function exportKeys(account: Account): readonly Settings[] {
  const newest = Map.groupBy(account.keys ?? [], ({ name }) => name)
  return [...newest.values()].flatMap(([key]) => {
    if (key === undefined) return []
    const current = currentOf(key, account)
    const isDead = Array.isArray(current['endpoints']) && current['endpoints'].length === 0
    return isDead ? [] : [{ name: key.name, ...withoutDefaults(current, defaults) }]
  })
}
