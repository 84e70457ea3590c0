import type { z } from 'zod'
import type { Clock } from '#lib/clock.ts'
import { segmentLimits } from '#model/limits.ts'
import type { SnapshotQuery } from '#model/node-protocol.ts'
import type { Snapshot, SnapshotEndpoint } from '#model/snapshot.ts'
import { listActiveApiKeys, listApiKeysRevokedSince } from '#store/api-keys.ts'
import { currentEpoch } from '#store/epoch.ts'
import { getNodeRegion, listNodes } from '#store/nodes.ts'
import { listRegionEndpoints, type RegionEndpoint } from '#store/snapshot-endpoints.ts'
import { readConsistently, type Store } from '#store/store.ts'
import { type HostOptions, ingestHost } from '../provisioning/ingest-host.ts'
import { effectiveSettings } from './effective-settings.ts'
import type { EpochFeed } from './epoch-feed.ts'
import { revokedKeysKeptMs, type Tokens } from './tokens.ts'

export type SnapshotsOptions = {
  readonly store: Store
  readonly feed: EpochFeed
  readonly tokens: Tokens
  readonly clock: Clock
  readonly hosts: HostOptions
  /** `iss` and `aud` of access tokens. */
  readonly issuer: string
}

/** Everything a node knows, read at one epoch. */
export class Snapshots {
  readonly #options: SnapshotsOptions

  constructor(options: SnapshotsOptions) {
    this.#options = options
  }

  /**
   * The snapshot as soon as the epoch is another than the node's, or undefined when that takes longer than `wait_ms`. Another,
   * not a higher one: a database that was restored from a copy begins again below what nodes have.
   */
  async awaitNewer(
    { node_id, after, wait_ms }: z.infer<typeof SnapshotQuery>,
    signal: AbortSignal,
  ): Promise<Snapshot | undefined> {
    const { store, feed } = this.#options
    const region = await getNodeRegion(store.db, node_id)
    const epoch = await feed.waitForOther(after, wait_ms, signal)
    return epoch === after ? undefined : this.#read(region, node_id)
  }

  #read(region: string, node_id: string): Promise<Snapshot> {
    const { store, tokens, clock, hosts, issuer } = this.#options
    return readConsistently(store, async (db) => {
      const nodes = (await listNodes(db, [region])).filter(({ id }) => id === node_id)
      const endpoints = await listRegionEndpoints(db, region, node_id)
      return {
        epoch: await currentEpoch(db),
        region,
        keys: [...(await listActiveApiKeys(db))],
        revoked_keys: [...(await listApiKeysRevokedSince(db, clock.now() - revokedKeysKeptMs))],
        jwks: await tokens.publicKeys(db),
        token_issuer: issuer,
        endpoints: endpoints.map((endpoint) => toSnapshotEndpoint(endpoint, ingestHost(endpoint, nodes, hosts))),
      }
    })
  }
}

function toSnapshotEndpoint(endpoint: RegionEndpoint, ingest_host: string): SnapshotEndpoint {
  const { id, account_id, desired_state, destination, views, committed_seq } = endpoint
  return {
    id,
    account_id,
    ingest_host,
    desired_state,
    ...effectiveSettings(endpoint),
    // What is open when it begins to drain shall be sealed soon, and no later than it would have been.
    ...(desired_state === 'draining' ? { segment_max_age_seconds: segmentLimits.maxAgeSecondsMin } : {}),
    destination,
    views: [...views],
    committed_seq,
  }
}
