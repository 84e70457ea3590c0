/** `inlet keys`: manages API keys of an account, directly in the database, so that it works while control is down. */
import { keyService } from '#control/resources/keys.ts'
import { type ApiKey, CreateApiKey, CreatedApiKey } from '#model/api-key.ts'
import { parseFields } from '#model/field-errors.ts'
import { getAccount } from '#store/accounts/accounts.ts'
import type { Store } from '#store/store.ts'
import { type CliContext, UsageError } from '../terminal/context.ts'
import { type JsonFlags, printJson, printResult } from '../terminal/print-json.ts'
import { toTable } from '../terminal/table.ts'
import { audited } from './audited.ts'
import { getFirstAccount, listAll, openToChange, openToRead, servicesBeside } from './store.ts'

export type KeyFlags = { readonly account?: string }
export type ListKeysFlags = KeyFlags & JsonFlags
export type RevokeKeyFlags = KeyFlags & JsonFlags & { readonly now: boolean }
export type CreateKeyFlags = KeyFlags &
  JsonFlags & {
    readonly name: string
    readonly scope: readonly string[]
    readonly endpoint?: readonly string[]
    readonly origin?: readonly string[]
  }

export async function createKey(
  this: CliContext,
  { name, scope, endpoint, origin, account, json }: CreateKeyFlags,
): Promise<void> {
  const parsed = parseFields(CreateApiKey, {
    ...{ name, scopes: scope, endpoint_ids: endpoint ?? null },
    ...(origin === undefined ? {} : { public: true, origins: origin }),
  })
  if (parsed.errors !== undefined) {
    throw new UsageError(parsed.errors.map(({ path, message }) => `${flagOf(path)}: ${message}`).join('\n'))
  }
  await using store = await openToChange(this)
  const { keys, caller } = await openKeys(this, store, account)
  const what = { operation: 'createKey', account_id: caller.account_id, resource_id: null }
  const nameCreated = ({ id: resource_id }: ApiKey) => ({ resource_id })
  const created = await audited(store, this.clock, { ...what, nameCreated }, () => keys.create(caller, parsed.value))
  const { api_key, id, scopes } = created
  printResult(
    this,
    { json },
    CreatedApiKey.parse(created),
    `${api_key}\n\nSave the key now: it is not shown again. Its id is ${id}; scopes: ${scopes.join(', ')}.\n`,
  )
}

function flagOf(path: string): string {
  if (path === 'name') return '--name'
  if (path.startsWith('origins')) return '--origin'
  return path.startsWith('endpoint_ids') ? '--endpoint' : '--scope'
}

export async function listKeys(this: CliContext, { account, json }: ListKeysFlags): Promise<void> {
  await using store = await openToRead(this)
  const { keys: service, caller } = await openKeys(this, store, account)
  const keys = await listAll((page) => service.list(caller, page))
  if (json) return printJson(this, keys)
  const rows = keys.map(
    ({ id, prefix, name, scopes, endpoint_ids, origins, created_at, last_used_at, revoked_at, revocation }) => [
      ...[id, `${prefix}…`, name, scopes.join(','), endpoint_ids?.join(',') ?? 'all', origins?.join(',') ?? '-', created_at],
      ...[last_used_at ?? '-', revoked_at ?? '-', revocation?.summary ?? '-'],
    ],
  )
  const table = toTable([
    ['ID', 'KEY', 'NAME', 'SCOPES', 'ENDPOINTS', 'PUBLIC FROM', 'CREATED', 'LAST USED', 'REVOKED', 'REVOCATION'],
    ...rows,
  ])
  this.process.stdout.write(keys.length === 0 ? 'There are no keys.\n' : table)
}

export async function revokeKey(this: CliContext, { account, json, now }: RevokeKeyFlags, id: string): Promise<void> {
  await using store = await openToChange(this)
  const { keys, caller } = await openKeys(this, store, account)
  const what = { operation: now ? 'revokeKeyNow' : 'revokeKey', account_id: caller.account_id, resource_id: id }
  const revoked = await audited(store, this.clock, what, () => keys.revoke(caller, id, { now }))
  printResult(
    this,
    { json },
    revoked,
    `The key "${revoked.name}" was revoked at ${revoked.revoked_at}. ${consequences(revoked)}\n${describeProgress(revoked)}`,
  )
}

function describeProgress({ revocation }: ApiKey): string {
  if (revocation === null) return ''
  const { summary, applied_at } = revocation
  return `So far: ${summary}.\n${applied_at === null ? 'inlet keys list says when all nodes have applied it.\n' : ''}`
}

function consequences({ access_ended_at }: ApiKey): string {
  return access_ended_at === null
    ? 'Control and nodes refuse it within seconds. Tokens that were issued for it end within 15 minutes, MQTT connections when they next authenticate; if the key leaked, revoke it again with --now.'
    : 'Control and nodes refuse it and its tokens within seconds, and end its MQTT connections.'
}

async function openKeys(context: CliContext, store: Store, id: string | undefined) {
  const { publicKeys } = await context.readConfig()
  const account = id === undefined ? await getFirstAccount(store) : await getAccount(store.db, id)
  return {
    keys: keyService({ ...servicesBeside(context, store), publicKeys: publicKeys === 'true' }),
    caller: { account_id: account.id, actor: 'cli' } as const,
  }
}
