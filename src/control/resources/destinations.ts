import { AppError } from '#errors.ts'
import type {
  ChangeDestination,
  CreateDestination,
  Destination,
  DestinationWithCount,
  StoredDestination,
} from '#model/destination.ts'
import type { ValidatedDestination } from '#model/destination-validation.ts'
import { newId } from '#model/id.ts'
import { objectKeyLimits } from '#model/limits.ts'
import { hasAllowedBuckets, type ObjectStoreSettings, type StoreTraits, suggestedSettings } from '#model/object-store.ts'
import type { Page, PageQuery } from '#model/page.ts'
import type { Principal } from '#model/principal.ts'
import type { ObjectStores } from '#objects/object-store.ts'
import { sessionName } from '#objects/session-name.ts'
import { getBucketAccess } from '#store/accounts/accounts.ts'
import { searchAgain } from '#store/commits/unsearched-losses.ts'
import {
  claimValidation,
  getDestination,
  insertDestination,
  listDestinations,
  recordValidation,
  removeDestination,
  updateDestination,
} from '#store/endpoints/destinations.ts'
import { transact } from '#store/store.ts'
import type { ControlContext } from '../context.ts'
import { bucketPolicy, trustPolicy } from './destination-policies.ts'
import { failureOf, tryDestination } from './try-destination.ts'

export type DestinationsOptions = Pick<ControlContext, 'store' | 'applyChange' | 'clock' | 'logger'> & {
  readonly objectStores: ObjectStores
  readonly storeTraits: StoreTraits
  /** The AWS principal that assumes the roles. */
  readonly awsPrincipalArn: string | null
}

export type Destinations = ReturnType<typeof destinationService>

export function destinationService(options: DestinationsOptions) {
  const { applyChange, awsPrincipalArn, clock, logger, objectStores, store, storeTraits } = options

  function withPolicies<T extends StoredDestination>(destination: T): T & Destination {
    const { role_arn } = destination
    return {
      ...destination,
      trust_policy: role_arn === null ? null : trustPolicy(destination, awsPrincipalArn),
      bucket_policy: role_arn === null ? null : bucketPolicy({ ...destination, role_arn }),
    }
  }

  return {
    /** Does not need a new epoch: nodes see a destination only once an endpoint uses it. */
    async create({ account_id }: Principal, destination: CreateDestination): Promise<Destination> {
      requireRole(storeTraits, destination.role_arn)
      requireFileNames(storeTraits, destination.prefix)
      return withPolicies(
        await transact(store, async (db) => {
          await searchAgain(db, { account_id })
          return insertDestination(db, account_id, { ...destination, id: newId() }, clock.now())
        }),
      )
    },

    async list({ account_id }: Principal, query: PageQuery): Promise<Page<DestinationWithCount>> {
      const page = await listDestinations(store.db, account_id, query)
      return { ...page, items: page.items.map((destination) => withPolicies(destination)) }
    },

    async get({ account_id }: Principal, id: string): Promise<DestinationWithCount> {
      return withPolicies(await getDestination(store.db, account_id, id))
    },

    async change({ account_id }: Principal, id: string, change: ChangeDestination): Promise<Destination> {
      requireRole(storeTraits, change.role_arn)
      requireFileNames(storeTraits, change.prefix)
      return withPolicies(
        await applyChange(async (db) => {
          await searchAgain(db, { account_id })
          return updateDestination(db, account_id, id, change, clock.now())
        }),
      )
    },

    remove({ account_id }: Principal, id: string): Promise<void> {
      return transact(store, (db) => removeDestination(db, account_id, id))
    },

    /** Returns what a destination of this account needs, before there is one. */
    async storeSettings({ account_id }: Principal): Promise<ObjectStoreSettings> {
      const { external_id, allowed } = await getBucketAccess(store.db, account_id)
      const { kind, has_roles } = storeTraits
      const allowed_buckets = hasAllowedBuckets(storeTraits) ? [...allowed] : null
      const suggested = suggestedSettings(storeTraits)
      return { kind, has_roles, allowed_buckets, external_id, principal_arn: awsPrincipalArn, suggested }
    },

    /** Tests the bucket. The result is recorded only if the settings did not change in the meantime. */
    async validate({ account_id }: Principal, id: string): Promise<ValidatedDestination> {
      const claim = await transact(store, (db) => claimValidation(db, account_id, id, clock.now()))
      const target = { ...claim.destination, session: sessionName({ account_id }) }
      const steps = await tryDestination(objectStores, storeTraits, target)
      const error = failureOf(steps)
      if (error !== null) logger.warn({ destination_id: id, reason: error }, 'destination validation failed')
      await transact(store, (db) => recordValidation(db, account_id, id, { revision: claim.revision, error }, clock.now()))
      return { ...withPolicies(await getDestination(store.db, account_id, id)), steps: [...steps] }
    },
  }
}

function requireRole(storeTraits: StoreTraits, role_arn: string | null | undefined): void {
  if (role_arn !== null || hasAllowedBuckets(storeTraits)) return
  const message = 'must be the ARN of the role that opens the bucket, such as arn:aws:iam::123456789012:role/ingest'
  throw new AppError('validation_error', `role_arn ${message}`, { errors: [{ path: 'role_arn', message }] })
}

/** A directory store has a file or directory for each part of a key, in which `%` takes three bytes. */
function requireFileNames({ kind }: StoreTraits, prefix = ''): void {
  const { fileNameBytesMax } = objectKeyLimits
  const isFileName = (part: string) => Buffer.byteLength(part.replaceAll('%', '%25')) <= fileNameBytesMax
  if (kind !== 'directory' || prefix.split('/').every(isFileName)) return
  const message = `must have at most ${fileNameBytesMax} bytes between two slashes: the buckets are directories here`
  throw new AppError('validation_error', `prefix ${message}`, { errors: [{ path: 'prefix', message }] })
}
