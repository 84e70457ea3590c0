import type { Clock } from '#lib/clock.ts'
import type { Logger } from '#lib/telemetry.ts'
import type { Principal } from '#model/api-key.ts'
import type {
  ChangeDestination,
  CreateDestination,
  Destination,
  DestinationWithCount,
  StoredDestination,
} from '#model/destination.ts'
import { newId } from '#model/id.ts'
import type { Page, PageQuery } from '#model/page.ts'
import type { ObjectStores } from '#objects/object-store.ts'
import { sessionName } from '#objects/session-name.ts'
import {
  claimValidation,
  getDestination,
  insertDestination,
  listDestinations,
  recordValidation,
  removeDestination,
  updateDestination,
} from '#store/destinations.ts'
import { type Store, transact } from '#store/store.ts'
import type { ApplyChange } from './changes.ts'
import { bucketPolicy, trustPolicy } from './destination-policies.ts'
import { tryDestination } from './try-destination.ts'

export type DestinationsOptions = {
  readonly store: Store
  readonly applyChange: ApplyChange
  readonly objectStores: ObjectStores
  readonly clock: Clock
  readonly logger: Logger
  /** The AWS principal that assumes the roles. */
  readonly awsPrincipalArn: string | null
}

export type Destinations = ReturnType<typeof destinationService>

export function destinationService({ applyChange, awsPrincipalArn, clock, logger, objectStores, store }: DestinationsOptions) {
  function withPolicies<T extends StoredDestination>(destination: T): T & Destination {
    return {
      ...destination,
      trust_policy: trustPolicy(destination, awsPrincipalArn),
      bucket_policy: bucketPolicy(destination),
    }
  }

  return {
    /** Does not need a new epoch: nodes see a destination only once an endpoint uses it. */
    async create({ account_id }: Principal, destination: CreateDestination): Promise<Destination> {
      return withPolicies(
        await transact(store, (db) => insertDestination(db, account_id, { ...destination, id: newId() }, clock.now())),
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
      return withPolicies(await applyChange((db) => updateDestination(db, account_id, id, change, clock.now())))
    },

    remove({ account_id }: Principal, id: string): Promise<void> {
      return transact(store, (db) => removeDestination(db, account_id, id))
    },

    /** Tests the bucket. The result is recorded only if the settings did not change in the meantime. */
    async validate({ account_id }: Principal, id: string): Promise<Destination> {
      const claim = await transact(store, (db) => claimValidation(db, account_id, id, clock.now()))
      const error = await tryDestination(objectStores, { ...claim.destination, session: sessionName({ account_id }) })
      if (error !== null) logger.warn({ destination_id: id, reason: error }, 'destination validation failed')
      await transact(store, (db) => recordValidation(db, account_id, id, { revision: claim.revision, error }, clock.now()))
      return withPolicies(await getDestination(store.db, account_id, id))
    },
  }
}
