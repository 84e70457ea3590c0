/**
 * Creates an account, a key, a destination, a view and an endpoint at the first start, so that one command is enough to send data.
 *
 * Law: all or nothing, in one transaction. If the database already has an account, only the operator's key and buckets are added. Nothing is
 * created in an empty database beside a node that was in use.
 */
import { newAccount } from '#auth/new-account.ts'
import { apiKeyOf, hashApiKey, newApiKey } from '#auth/secrets.ts'
import { AppError } from '#errors.ts'
import { AllowedBuckets } from '#model/allowed-bucket.ts'
import { scopes } from '#model/api-key.ts'
import type { Definition } from '#model/definition.ts'
import { CreateDestination } from '#model/destination.ts'
import { defaultEncryption, encryptionAfter } from '#model/destination-encryption.ts'
import { MqttConfig } from '#model/endpoint.ts'
import { parseFields } from '#model/field-errors.ts'
import { newId, newLabel } from '#model/id.ts'
import { segmentLimits } from '#model/limits.ts'
import { type StoreTraits, suggestedSettings } from '#model/object-store.ts'
import { CreateView } from '#model/view.ts'
import { type HostOptions, ingestHost } from '#naming/ingest-host.ts'
import type { ObjectStores } from '#objects/object-store.ts'
import { allowBuckets, findFirstAccount, insertAccountWithKey } from '#store/accounts/accounts.ts'
import { findApiKeyByHash, insertApiKey } from '#store/accounts/api-keys.ts'
import { eventOutsideApi, insertAuditEvent } from '#store/accounts/audit-events.ts'
import { type ChangeTx, currentPosition } from '#store/cluster/epoch.ts'
import { insertBinding } from '#store/endpoints/bindings.ts'
import { claimValidation, insertDestination, recordValidation } from '#store/endpoints/destinations.ts'
import { insertEndpoint } from '#store/endpoints/endpoints.ts'
import { insertView, publishView } from '#store/endpoints/views.ts'
import type { ControlContext } from '../context.ts'
import { endpointLabelChars } from './endpoints.ts'
import { failureOf, tryDestination } from './try-destination.ts'

export type Bootstrapped = {
  readonly account_id: string
  /** The secret, to print once; null if the operator provided it. */
  readonly api_key: string | null
  readonly endpoint_id: string
  readonly ingest_host: string
  /** How long until a record is in the bucket, at most. */
  readonly segment_max_age_seconds: number
}

export type BootstrapOptions = Pick<ControlContext, 'store' | 'applyChange' | 'clock' | 'logger'> & {
  readonly objectStores: ObjectStores
  readonly region: string
  readonly hosts: HostOptions
  /** API key to create at startup, with all scopes. */
  readonly apiKey: string | null
  readonly storeTraits: StoreTraits
  /** Buckets that the first account may use if roles do not decide. */
  readonly buckets: readonly string[] | null
  /** Whether the node of this data directory was in use: then an empty database is not that of a first start. */
  readonly isNodeInUse: boolean
  /** Whether somebody at a terminal tries Inlet out: then files appear within seconds. Otherwise the default applies, which makes fewer and larger files. */
  readonly isAtTerminal: boolean
}

/** The configured API key or a bucket cannot be used: the process must not start without it. */
class BootstrapError extends Error {
  override readonly name = 'BootstrapError'
}

const actor = 'bootstrap'

const emptyBesideNode =
  'the database is empty, but the node of this data directory was in use: the database is lost, or INLET_DATABASE_URL names another one. Nothing was created in it, and the node keeps its configuration'
const restoreOrAccept =
  'put the database of a backup in its place (docs/how-to/lost-database.md); to begin with this empty one, run inlet database accept and start again'

const maxAgeSecondsAtTerminal = 5

/** Not checked here, which would cost a process: a test publishes it. */
const definition: Definition = {
  columns: [
    { name: 'event', type: 'VARCHAR', path: '$.event', required: true },
    { name: 'user_id', type: 'VARCHAR', path: '$.user.id' },
    { name: 'amount', type: 'DOUBLE', path: '$.amount', cast_failures: 'dlq' },
    { name: 'sent_at', type: 'TIMESTAMP', path: '$.at' },
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
  const buckets = options.buckets === null ? null : parseBuckets(options.buckets)
  if ((await findFirstAccount(store.db)) === undefined) {
    const { generation } = await currentPosition(store.db)
    if (!options.isNodeInUse || generation > 0) return createFirstAccount({ ...options, buckets })
    options.logger.error({ next: restoreOrAccept }, emptyBesideNode)
    return undefined
  }
  if (buckets !== null) await allowFirstAccount(options, buckets)
  if (apiKey !== null && (await findUsableKey(options, apiKey)) === undefined) await createOperatorKey(options, apiKey)
  return undefined
}

async function createFirstAccount(options: BootstrapOptions): Promise<Bootstrapped | undefined> {
  const { applyChange, clock, region, hosts, storeTraits, buckets } = options
  const destination = firstDestination(options)
  const created = {
    ...newAccount('default', options.apiKey === null ? newApiKey() : apiKeyOf(options.apiKey)),
    destination: destination && { ...destination, id: newId() },
    endpoint: { id: newId(), region, label: newLabel(endpointLabelChars) },
  }
  const steps =
    created.destination &&
    (await tryDestination(options.objectStores, storeTraits, {
      ...created.destination,
      ...encryptionAfter(defaultEncryption, created.destination),
      external_id: created.account.external_id,
      allowed_buckets: [...(buckets ?? [])],
    }))
  const maxAgeSeconds = options.isAtTerminal ? maxAgeSecondsAtTerminal : null
  const isFirst = await applyChange(async (db, epoch) => {
    // Another process may have created the account. The lock on the epoch makes the second process wait.
    if ((await findFirstAccount(db)) !== undefined) return false
    const now = clock.now()
    await insertAccountWithKey(db, { ...created, key: { ...created.key, name: actor } }, now)
    const account_id = created.account.id
    if (buckets !== null) await allowBuckets(db, account_id, buckets)
    if (created.destination !== undefined && steps !== undefined) {
      await insertDestination(db, account_id, created.destination, now)
      const { revision } = await claimValidation(db, account_id, created.destination.id, now)
      await recordValidation(db, account_id, created.destination.id, { revision, error: failureOf(steps) }, now)
    }
    const settings = {
      name: 'default',
      destination_id: created.destination?.id ?? null,
      segment_bytes: null,
      segment_max_age_seconds: maxAgeSeconds,
      output_formats: ['parquet_views', 'parquet', 'segments'] as const,
      mqtt_config: MqttConfig.parse({}),
      compaction: null,
      kept_headers: null,
      kept_fields: null,
      copies: null,
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
    segment_max_age_seconds: maxAgeSeconds ?? segmentLimits.maxAgeSecondsDefault,
  }
}

/** Returns the first destination. A role only its owner can create: where one is needed, data stays on the nodes until there is a destination. */
function firstDestination({ storeTraits, buckets }: BootstrapOptions): CreateDestination | undefined {
  const suggested = suggestedSettings(storeTraits)
  const at = (name: string, prefix?: string) =>
    CreateDestination.parse({ name, bucket: name, prefix, ...suggested, region: suggested.region ?? 'us-east-1' })
  if (storeTraits.kind === 'directory') return at('local')
  const [bucket, ...prefix] = buckets?.[0]?.split('/') ?? []
  return bucket === undefined ? undefined : at(bucket, prefix.join('/'))
}

async function attachFirstView(db: ChangeTx, account_id: string, endpoint_id: string, now: number): Promise<void> {
  const { id: view_id } = await insertView(db, account_id, { ...view, definition, id: newId(), created_by: actor }, now)
  await publishView(db, account_id, view_id, now)
  const binding = { id: newId(), endpoint_id, view_id, is_required: false, canary_start_ts: null, activated_by: actor }
  await insertBinding(db, account_id, binding, now)
}

/** A key that was created before a scope existed does not get that scope: its holder was never given it. */
async function findUsableKey({ store, logger }: BootstrapOptions, secret: string): Promise<string | undefined> {
  const key = await findApiKeyByHash(store.db, hashApiKey(secret))
  if (key === undefined) return undefined
  if (key.revoked_at !== null) {
    throw new BootstrapError(
      `INLET_BOOTSTRAP_API_KEY is the key ${key.prefix}…, which was revoked at ${key.revoked_at}: set another key, or unset it`,
    )
  }
  const missing = scopes.filter((scope) => !key.scopes.includes(scope))
  if (missing.length > 0)
    logger.warn(
      { key: key.prefix, missing },
      `INLET_BOOTSTRAP_API_KEY is a key without ${missing.length === 1 ? 'the scope' : 'the scopes'} ${missing.join(', ')}, which it does not get: create a key that has more (inlet keys create), or set a new one to be created with all`,
    )
  return key.id
}

function parseBuckets(buckets: readonly string[]): readonly string[] {
  const { value, errors } = parseFields(AllowedBuckets, buckets)
  if (value !== undefined) return value
  throw new BootstrapError(
    `INLET_S3_BUCKETS: ${errors.map(({ path, message }) => `${buckets[Number(path)]} ${message}`).join('; ')}`,
  )
}

/** Allows what is missing. What the operator allowed by other means stays. */
async function allowFirstAccount({ applyChange, store, clock }: BootstrapOptions, buckets: readonly string[]): Promise<void> {
  const first = await findFirstAccount(store.db)
  if (first === undefined || buckets.every((bucket) => first.allowed_buckets?.includes(bucket))) return
  await applyChange(async (db) => {
    try {
      if ((await allowBuckets(db, first.id, buckets)).length === 0) return
    } catch (error) {
      throw error instanceof AppError ? new BootstrapError(`INLET_S3_BUCKETS: ${error.message}`) : error
    }
    const event = { actor, operation: 'changeAccount', account_id: first.id, resource_id: first.id } as const
    await insertAuditEvent(db, eventOutsideApi(event, clock.now()))
  })
}

async function createOperatorKey(options: BootstrapOptions, secret: string): Promise<void> {
  const { applyChange, clock } = options
  const { prefix, hash } = apiKeyOf(secret)
  await applyChange(async (db) => {
    const account = await findFirstAccount(db)
    // Another process with the same key may have created it.
    if (account === undefined || (await findApiKeyByHash(db, hash)) !== undefined) return
    const key = { id: newId(), account_id: account.id, name: actor, prefix, hash, scopes, endpoint_ids: null, origins: null }
    await insertApiKey(db, key, clock.now())
    const event = { actor, operation: 'createKey', account_id: account.id, resource_id: key.id } as const
    await insertAuditEvent(db, eventOutsideApi(event, clock.now()))
  })
  await findUsableKey(options, secret)
}
