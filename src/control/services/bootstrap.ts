/**
 * Creates an account, a key, a destination, a view and an endpoint at the first start, so that one command is enough to send data.
 *
 * Law: all or nothing, in one transaction. If the database already has an account, only the operator's key is added.
 */
import { newAccount } from '#auth/new-account.ts'
import { apiKeyOf, hashApiKey, newApiKey } from '#auth/secrets.ts'
import type { Clock } from '#lib/clock.ts'
import { scopes } from '#model/api-key.ts'
import type { Definition } from '#model/definition.ts'
import { CreateDestination } from '#model/destination.ts'
import { MqttConfig } from '#model/endpoint.ts'
import { newId, newLabel } from '#model/id.ts'
import { CreateView } from '#model/view.ts'
import type { ObjectStores } from '#objects/object-store.ts'
import { findFirstAccount, insertAccountWithKey } from '#store/accounts.ts'
import { findApiKeyByHash, insertApiKey } from '#store/api-keys.ts'
import { eventOutsideApi, insertAuditEvent } from '#store/audit-events.ts'
import { insertBinding } from '#store/bindings.ts'
import { claimValidation, insertDestination, recordValidation } from '#store/destinations.ts'
import { insertEndpoint } from '#store/endpoints.ts'
import type { ChangeTx } from '#store/epoch.ts'
import type { Store } from '#store/store.ts'
import { insertView, publishView } from '#store/views.ts'
import { type HostOptions, ingestHost } from '../provisioning/ingest-host.ts'
import type { ApplyChange } from './changes.ts'
import { endpointLabelChars } from './endpoints.ts'
import { tryDestination } from './try-destination.ts'

export type Bootstrapped = {
  readonly account_id: string
  /** The secret, to print once; null if the operator provided it. */
  readonly api_key: string | null
  readonly endpoint_id: string
  readonly ingest_host: string
}

export type BootstrapOptions = {
  readonly store: Store
  readonly applyChange: ApplyChange
  readonly objectStores: ObjectStores
  readonly clock: Clock
  readonly region: string
  readonly hosts: HostOptions
  /** API key to create at startup, with all scopes. */
  readonly apiKey: string | null
  /** Whether buckets are local. On S3 a destination needs a role that only its owner can create; data stays on the nodes until then. */
  readonly hasLocalBucket: boolean
}

/** The configured API key cannot be used: the process must not start without it. */
class BootstrapError extends Error {
  override readonly name = 'BootstrapError'
}

const actor = 'bootstrap'

const destination = CreateDestination.parse({
  name: 'local',
  bucket: 'local',
  region: 'local',
  role_arn: 'arn:aws:iam::000000000000:role/inlet-local',
})

/** Not checked here, which would cost a process: a test publishes it. */
const definition: Definition = {
  columns: [
    { name: 'event', type: 'VARCHAR', path: '$.event', required: true },
    { name: 'user_id', type: 'VARCHAR', path: '$.user.id' },
    { name: 'amount', type: 'DOUBLE', path: '$.amount', cast_failures: 'dlq' },
    { name: 'at', type: 'TIMESTAMP', path: '$.at' },
    { name: 'received_at', type: 'TIMESTAMP', path: '$$.ingested_at' },
  ],
}

const view = CreateView.parse({
  name: 'events',
  definition,
  description: 'An example view: the event, its user, amount and time. Create a new version of it for your own data.',
})

/** Returns what was created, or undefined if the database was already in use. */
export async function bootstrap(options: BootstrapOptions): Promise<Bootstrapped | undefined> {
  const { store, apiKey } = options
  if ((await findFirstAccount(store.db)) === undefined) return createFirstAccount(options)
  if (apiKey !== null && (await findUsableKey(store, apiKey)) === undefined) await createOperatorKey(options, apiKey)
  return undefined
}

async function createFirstAccount(options: BootstrapOptions): Promise<Bootstrapped | undefined> {
  const { applyChange, clock, region, hosts } = options
  const created = {
    ...newAccount('default', options.apiKey === null ? newApiKey() : apiKeyOf(options.apiKey)),
    destination: options.hasLocalBucket ? { ...destination, id: newId() } : undefined,
    endpoint: { id: newId(), region, label: newLabel(endpointLabelChars) },
  }
  const error =
    created.destination &&
    (await tryDestination(options.objectStores, { ...created.destination, external_id: created.account.external_id }))
  const isFirst = await applyChange(async (db, epoch) => {
    // Another process may have created the account. The lock on the epoch makes the second process wait.
    if ((await findFirstAccount(db)) !== undefined) return false
    const now = clock.now()
    await insertAccountWithKey(db, { ...created, key: { ...created.key, name: actor } }, now)
    const account_id = created.account.id
    if (created.destination !== undefined && error !== undefined) {
      await insertDestination(db, account_id, created.destination, now)
      const { revision } = await claimValidation(db, account_id, created.destination.id, now)
      await recordValidation(db, account_id, created.destination.id, { revision, error }, now)
    }
    const settings = {
      name: 'default',
      destination_id: created.destination?.id ?? null,
      segment_bytes: null,
      // Short, so that files appear within seconds when trying Inlet out.
      segment_max_age_seconds: 2,
      output_formats: ['parquet_views', 'parquet', 'segments'] as const,
      mqtt_config: MqttConfig.parse({}),
    }
    await insertEndpoint(db, account_id, { ...created.endpoint, ...settings, since_epoch: epoch }, now)
    await attachFirstView(db, account_id, created.endpoint.id, now)
    await insertAuditEvent(db, eventOutsideApi({ actor, operation: 'createAccount', account_id, resource_id: account_id }, now))
    return true
  })
  if (!isFirst) return bootstrap(options)
  return {
    account_id: created.account.id,
    api_key: options.apiKey === null ? created.secret : null,
    endpoint_id: created.endpoint.id,
    ingest_host: ingestHost(created.endpoint, [], hosts),
  }
}

async function attachFirstView(db: ChangeTx, account_id: string, endpoint_id: string, now: number): Promise<void> {
  const { id: view_id } = await insertView(db, account_id, { ...view, definition, id: newId(), created_by: actor }, now)
  await publishView(db, account_id, view_id, now)
  const binding = { id: newId(), endpoint_id, view_id, is_required: false, canary_start_ts: null, activated_by: actor }
  await insertBinding(db, account_id, binding, now)
}

async function findUsableKey(store: Store, secret: string): Promise<string | undefined> {
  const key = await findApiKeyByHash(store.db, hashApiKey(secret))
  if (key === undefined) return undefined
  if (key.revoked_at !== null) {
    throw new BootstrapError(
      `INLET_BOOTSTRAP_API_KEY is the key ${key.prefix}…, which was revoked at ${key.revoked_at}: set another key, or unset it`,
    )
  }
  if (!scopes.every((scope) => key.scopes.includes(scope))) {
    throw new BootstrapError(
      `INLET_BOOTSTRAP_API_KEY is the key ${key.prefix}…, which has only the scopes ${key.scopes.join(', ')}: set a key with all scopes`,
    )
  }
  return key.id
}

async function createOperatorKey({ store, applyChange, clock }: BootstrapOptions, secret: string): Promise<void> {
  const { prefix, hash } = apiKeyOf(secret)
  await applyChange(async (db) => {
    const account = await findFirstAccount(db)
    // Another process with the same key may have created it.
    if (account === undefined || (await findApiKeyByHash(db, hash)) !== undefined) return
    const key = { id: newId(), account_id: account.id, name: actor, prefix, hash, scopes }
    await insertApiKey(db, key, clock.now())
    const event = { actor, operation: 'createKey', account_id: account.id, resource_id: key.id } as const
    await insertAuditEvent(db, eventOutsideApi(event, clock.now()))
  })
  await findUsableKey(store, secret)
}
