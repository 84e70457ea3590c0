import { parseArgs } from 'node:util'
import { newApiKey } from '#auth/secrets.ts'
import type { Config } from '#config.ts'
import { AppError } from '#errors.ts'
import { CreateApiKey } from '#model/api-key.ts'
import { newId } from '#model/id.ts'
import { findFirstAccount } from '#store/accounts.ts'
import { insertApiKey, listApiKeys, revokeApiKey } from '#store/api-keys.ts'
import { bumpEpoch } from '#store/epoch.ts'
import { migrate } from '#store/migrate.ts'
import { openStore, type Store, transact } from '#store/store.ts'

const usage = `Usage:
  inlet keys create --name NAME --scope SCOPE[,SCOPE…]   make a key and show it, once
  inlet keys list                                        what keys there are
  inlet keys revoke ID                                   end a key: nodes refuse it within seconds

Scopes: ingest (send data), metrics (read), admin (manage everything).
`

type Output = { write(text: string): unknown }

class UsageError extends Error {
  override readonly name = 'UsageError'
}

/** API keys of the first account, straight on the store, also while control is down. Answers the exit code: 2 for wrong use. */
export async function keysCommand(
  args: readonly string[],
  config: Pick<Config, 'databaseUrl'> & { readonly paths: Pick<Config['paths'], 'database'> },
  stdout: Output,
): Promise<number> {
  const [verb, ...rest] = args
  if (verb === undefined || verb === 'help' || rest.includes('--help')) {
    stdout.write(usage)
    return 0
  }
  let store: Store | undefined
  try {
    const run = parse(verb, rest)
    store = await openStore(config.databaseUrl || config.paths.database)
    await migrate(store)
    const account = await findFirstAccount(store.db)
    if (account === undefined) {
      stdout.write('There is no account yet: the first start of the control process makes it (npm start).\n')
      return 1
    }
    stdout.write(await run(store, account.id))
    return 0
  } catch (error) {
    if (error instanceof UsageError) {
      stdout.write(`${error.message}\n\n${usage}`)
      return 2
    }
    if (error instanceof AppError) {
      stdout.write(`${error.message}\n`)
      return 1
    }
    throw error
  } finally {
    await store?.close()
  }
}

type Run = (store: Store, account_id: string) => Promise<string>

function parse(verb: string, args: readonly string[]): Run {
  const { values, positionals } = parseOptions(args)
  if (verb === 'create' && positionals.length === 0) return create(values)
  if (values.name !== undefined || values.scope !== undefined) throw new UsageError('--name and --scope belong to create.')
  const [id, ...more] = positionals
  if (verb === 'list' && id === undefined) return list
  if (verb === 'revoke' && id !== undefined && more.length === 0) return (store, account_id) => revoke(store, account_id, id)
  throw new UsageError(verb === 'revoke' ? 'revoke takes the id of one key.' : `keys doesn't know: ${[verb, ...args].join(' ')}`)
}

function parseOptions(args: readonly string[]) {
  try {
    const options = { name: { type: 'string' }, scope: { type: 'string', multiple: true } } as const
    return parseArgs({ args: [...args], options, allowPositionals: true })
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error))
  }
}

function create({ name, scope }: { name?: string | undefined; scope?: string[] | undefined }): Run {
  if (name === undefined || scope === undefined) throw new UsageError('create needs --name and --scope.')
  const scopes = scope.flatMap((list) => list.split(',').map((part) => part.trim()))
  const parsed = CreateApiKey.safeParse({ name, scopes })
  if (!parsed.success) {
    throw new UsageError(parsed.error.issues.map(({ path, message }) => `${path.join('.')}: ${message}`).join('\n'))
  }
  return async (store, account_id) => {
    const { secret, prefix, hash } = newApiKey()
    const key = { id: newId(), account_id, ...parsed.data, prefix, hash }
    await transact(store, async (db) => {
      await bumpEpoch(db)
      await insertApiKey(db, key, Date.now())
    })
    return `${secret}\n\nThis is the only time that the key is shown. Its id is ${key.id}; scopes: ${key.scopes.join(', ')}.\n`
  }
}

async function list(store: Store, account_id: string): Promise<string> {
  const keys = await listApiKeys(store.db, account_id)
  if (keys.length === 0) return 'There are no keys.\n'
  const rows = keys.map(({ id, prefix, name, scopes, created_at, revoked_at }) => [
    ...[id, `${prefix}…`, name, scopes.join(','), created_at],
    revoked_at === null ? '-' : revoked_at,
  ])
  return toTable([['ID', 'KEY', 'NAME', 'SCOPES', 'CREATED', 'REVOKED'], ...rows])
}

async function revoke(store: Store, account_id: string, id: string): Promise<string> {
  const { name, revoked_at } = await transact(store, async (db) => {
    await bumpEpoch(db)
    return revokeApiKey(db, account_id, id, Date.now())
  })
  return `The key "${name}" is revoked since ${revoked_at}. Tokens that were made with it die within 15 minutes.\n`
}

function toTable(rows: readonly (readonly string[])[]): string {
  const widths = (rows[0] ?? []).map((_, index) => Math.max(...rows.map((row) => row[index]?.length ?? 0)))
  const lines = rows.map((row) => row.map((cell, index) => cell.padEnd(widths[index] ?? 0)).join('  '))
  return lines.map((line) => `${line.trimEnd()}\n`).join('')
}
