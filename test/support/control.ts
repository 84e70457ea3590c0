/** Starts control on a database of its own and calls it over HTTP. Every response is checked against the OpenAPI description. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'vitest'
import { newApiKey, newExternalId } from '#auth/secrets.ts'
import { type App, startControl } from '#control/app.ts'
import type { Bootstrapped } from '#control/resources/bootstrap.ts'
import type { SearchEndpoint } from '#control/upkeep/losses-in-buckets.ts'
import type { RebuildRegion } from '#control/upkeep/lost-commits.ts'
import { must } from '#lib/assert.ts'
import { type Clock, systemClock } from '#lib/clock.ts'
import { createLogger } from '#lib/telemetry.ts'
import { type Scope, scopes } from '#model/api-key.ts'
import { newId } from '#model/id.ts'
import { insertAccount } from '#store/accounts/accounts.ts'
import { insertApiKey } from '#store/accounts/api-keys.ts'
import { inNewEpoch } from '#store/cluster/epoch.ts'
import { openStore, type Store } from '#store/store.ts'
import { readConfig } from '../../src/config/config.ts'
import { newMigratedDatabase, type TestDatabase } from './databases.ts'
import { describedBy } from './described.ts'
import { secretKey } from './keyring.ts'
import { watchText } from './secrets-in-output.ts'
import { useOne } from './use-one.ts'

export const nodeToken = 'a-node-token-of-the-tests-0123456789'
export const operatorToken = 'an-operator-token-of-the-tests-0123456789'

/** The system clock with an offset that a test can change. Timers are not affected. */
class MovableClock implements Clock {
  #offsetMs = 0
  now = (): number => Date.now() + this.#offsetMs
  #passedMs = 0
  monotonic = (): number => systemClock.monotonic() + this.#passedMs
  setTimer = systemClock.setTimer
  timeout = systemClock.timeout
  nextTurn = systemClock.nextTurn
  advance(ms: number): void {
    this.#offsetMs += ms
  }
  /** Advances the monotonic clock, too. */
  pass(ms: number): void {
    this.advance(ms)
    this.#passedMs += ms
  }
}

// biome-ignore lint/suspicious/noExplicitAny: tests look into responses of every shape, and the description checks them all
export type Answer = { readonly status: number; readonly headers: Headers; readonly body: any }

export type Call = (method: string, path: string, body?: unknown, headers?: Record<string, string>) => Promise<Answer>

export type ApiClient = {
  readonly get: (path: string) => Promise<Answer>
  readonly post: (path: string, body?: unknown) => Promise<Answer>
  readonly patch: (path: string, body: unknown) => Promise<Answer>
  readonly delete: (path: string) => Promise<Answer>
}

export type TestAccount = ApiClient & {
  readonly account_id: string
  readonly key_id: string
  readonly api_key: string
  /** Returns a client of the same account with a token of another scope, or without one. */
  readonly as: (scope: Scope | 'nobody') => ApiClient
}

export type TestControl = AsyncDisposable & {
  readonly app: App
  readonly url: string
  readonly clock: MovableClock
  readonly directory: string
  readonly bootstrapped: Bootstrapped | undefined
  /** A second connection to its database, as another process would have. */
  readonly store: Store
  /** Calls the node API for a path under `/internal`. */
  readonly call: Call
  readonly newAccount: (held?: readonly Scope[]) => Promise<TestAccount>
}

export type ControlOptions = {
  readonly environment?: Record<string, string>
  readonly isAtTerminal?: boolean
  readonly database?: TestDatabase
  readonly directory?: string
  readonly rebuildRegion?: RebuildRegion
  readonly searchEndpoint?: SearchEndpoint
  /** Gets each line of the log. */
  readonly onLog?: (line: string) => void
}

export async function newControl({
  environment = {},
  isAtTerminal = false,
  ...given
}: ControlOptions = {}): Promise<TestControl> {
  const directory = given.directory ?? mkdtempSync(join(tmpdir(), 'inlet-control-'))
  const database = given.database ?? (await newMigratedDatabase())
  const clock = new MovableClock()
  let bootstrapped: Bootstrapped | undefined
  const config = readConfig({
    INLET_DATA_DIR: directory,
    INLET_DATABASE_URL: database.url,
    INLET_CONTROL_LISTEN: '127.0.0.1:0',
    INLET_NODE_API_LISTEN: '127.0.0.1:0',
    INLET_BASE_URL: 'http://inlet.test',
    INLET_NODE_TOKEN: nodeToken,
    INLET_SECRET_KEY: secretKey,
    INLET_OPERATOR_TOKEN: operatorToken,
    INLET_API_REQUESTS_PER_MINUTE: '100000',
    INLET_EXCHANGE_REQUESTS_PER_MINUTE: '100000',
    INLET_ADDRESS_REQUESTS_PER_MINUTE: '1000000',
    ...environment,
  })
  const secrets = new Map([
    [nodeToken, 'the node token'],
    [operatorToken, 'the operator token'],
  ])
  const watch = watchText('the log of control', secrets)
  const write = (line: string) => {
    watch(line)
    given.onLog?.(line)
  }
  const logger = createLogger('control', 'debug', undefined, { write })
  const onBootstrap = (made: Bootstrapped) => {
    bootstrapped = made
  }
  const { rebuildRegion, searchEndpoint } = given
  const recovery = { ...(rebuildRegion && { rebuildRegion }), ...(searchEndpoint && { searchEndpoint }) }
  const app = await startControl(config, { logger, clock, onBootstrap, isAtTerminal, ...recovery })
  const store = await openStore(database.url)
  const call = callOf(app)
  return {
    ...{ app, url: app.url, clock, directory, bootstrapped, store, call },
    newAccount: (held = scopes) => newAccount(store, clock, call, held),
    async [Symbol.asyncDispose]() {
      await app.stop(AbortSignal.timeout(5_000))
      await store.close()
      if (given.database === undefined) await database[Symbol.asyncDispose]()
      if (given.directory === undefined) rmSync(directory, { recursive: true, force: true })
    },
  }
}

/** Starts one control for the tests of a file. Each test creates its own accounts. */
export function useControl(options?: ControlOptions): () => TestControl {
  return useOne(() => newControl(options))
}

/** Tests that get an account of their own if they ask for one. */
export function testWithAccount(control: () => TestControl) {
  return test.extend<{ readonly account: TestAccount }>({
    // biome-ignore lint/correctness/noEmptyPattern: Vitest reads what a fixture needs from its pattern
    account: async ({}, use) => use(await control().newAccount()),
  })
}

/** A control belongs to one test file, so regions are counted per file. */
let regions = 0

/** Returns three letters that no other test of the file uses, so that it has its own nodes. */
export function newRegion(): string {
  const number = regions++
  return [676, 26, 1].map((place) => String.fromCharCode(97 + (Math.floor(number / place) % 26))).join('')
}

function callOf(app: App): Call {
  return async (method, path, body, headers = {}) => {
    const url = path.startsWith('/internal/') ? app.nodeApiUrl : app.url
    const response = await fetch(url + path, {
      method,
      headers: { ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...headers },
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    })
    const text = await response.text()
    const isJson = method !== 'HEAD' && /[/+]json/.test(response.headers.get('content-type') ?? '')
    const answer = { status: response.status, headers: response.headers, body: isJson ? JSON.parse(text) : text }
    await describedBy(url, method, path, answer)
    return answer
  }
}

async function newAccount(store: Store, clock: Clock, call: Call, held: readonly Scope[]): Promise<TestAccount> {
  const account_id = newId()
  const key_id = newId()
  const { secret, prefix, hash } = newApiKey()
  await inNewEpoch(store, async (db) => {
    await insertAccount(db, { id: account_id, name: `test ${account_id}`, external_id: newExternalId() }, clock.now())
    await insertApiKey(
      db,
      { id: key_id, account_id, name: 'test', prefix, hash, scopes: held, endpoint_ids: null, origins: null },
      clock.now(),
    )
  })
  return accountOf(call, { account_id, key_id, api_key: secret }, held)
}

/** Creates an account as an operator does. */
export async function createAccount(call: Call, name = `created ${newId()}`): Promise<TestAccount> {
  const { body } = await clientOf(call, operatorToken).post('/v1/accounts', { name })
  const { id: key_id, api_key } = body.first_key
  return accountOf(call, { account_id: body.id, key_id, api_key }, scopes)
}

type Credentials = Pick<TestAccount, 'account_id' | 'key_id' | 'api_key'>

async function accountOf(call: Call, credentials: Credentials, held: readonly Scope[]): Promise<TestAccount> {
  const { api_key } = credentials
  const tokens = new Map<string, string>()
  for (const scope of held) {
    const { body } = await call('POST', '/v1/token/exchange', { api_key, scope, ttl: '1h' })
    tokens.set(scope, body.access_token)
  }
  const as = (scope: Scope | 'nobody') =>
    clientOf(call, scope === 'nobody' ? undefined : must(tokens.get(scope), `token ${scope}`))
  return { ...(held.includes('admin') ? as('admin') : as('nobody')), ...credentials, as }
}

export function clientOf(call: Call, token: string | undefined): ApiClient {
  const headers: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` }
  return {
    get: (path) => call('GET', path, undefined, headers),
    post: (path, body) => call('POST', path, body, headers),
    patch: (path, body) => call('PATCH', path, body, headers),
    delete: (path) => call('DELETE', path, undefined, headers),
  }
}
