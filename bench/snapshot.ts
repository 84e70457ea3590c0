import { join } from 'node:path'
import { publicKeys } from '#auth/access-tokens.ts'
import { Snapshots } from '#control/fleet/snapshots.ts'
import { must } from '#lib/assert.ts'
import { systemClock as clock } from '#lib/clock.ts'
import { Keyring, newSecretKey } from '#lib/keyring.ts'
import { createLogger } from '#lib/telemetry.ts'
import { newId, newLabel } from '#model/id.ts'
import type { SectionKind } from '#model/snapshot-sections.ts'
import { parseUpdates, SnapshotSections } from '#node/snapshot-sections.ts'
import { insertAccount } from '#store/accounts/accounts.ts'
import { insertApiKey, type NewStoredApiKey } from '#store/accounts/api-keys.ts'
import { listSigningKeys } from '#store/accounts/signing-keys.ts'
import { createApplyChange } from '#store/cluster/changes.ts'
import { currentEpoch } from '#store/cluster/epoch.ts'
import { EpochFeed } from '#store/cluster/epoch-feed.ts'
import { insertEndpoint, updateEndpoint } from '#store/endpoints/endpoints.ts'
import { migrate } from '#store/migrations/migrate.ts'
import { registerNode } from '#store/nodes/nodes.ts'
import { openStore } from '#store/store.ts'
import { type Benchmark, cost } from './figures.ts'
import { Scratch } from './measure.ts'

const endpointCount = 10_000
const keyCount = 100_000
const polls = 200
const kinds: SectionKind[] = ['installation', 'keys', 'endpoints', 'views']

export const benchmark: Benchmark = {
  about: `The configuration that nodes receive, with ${endpointCount} endpoints and ${keyCount} keys: a full snapshot, one changed endpoint, one new key, and a poll without changes. Control's service on SQLite and a node, in one process, without the network.`,
  async *measure() {
    await using stack = new AsyncDisposableStack()
    const scratch = stack.use(await Scratch.create())
    const store = await openStore(join(scratch.path, 'inlet.db'))
    stack.defer(() => store.close())
    await migrate(store)
    const feed = new EpochFeed({ readEpoch: () => currentEpoch(store.db), clock, logger: createLogger('bench', 'error') })
    const applyChange = createApplyChange(store, feed)
    const keyring = new Keyring(newSecretKey(), 'bench')
    const readPublicKeys = async () => publicKeys(await listSigningKeys(store.db, keyring))
    const snapshots = new Snapshots({ store, feed, readPublicKeys, keyring, clock, issuer: 'http://bench', baseDomain: null })
    const account = newId()
    const node_id = newId()
    await insertAccount(store.db, { id: account, name: 'bench', external_id: newId() }, Date.now())
    await registerNode(store.db, { node_id, region: 'loc', ipv4: [], ipv6: [], ingest_address: 'node:1' }, Date.now())
    const endpoints = Array.from({ length: endpointCount }, newId)
    const settings = {
      name: null,
      destination_id: null,
      segment_bytes: null,
      segment_max_age_seconds: null,
      output_formats: null,
      mqtt_config: null,
      compaction: null,
      kept_headers: null,
      kept_fields: null,
      copies: null,
    }
    const newKey = (): NewStoredApiKey => ({
      ...{ id: newId(), account_id: account, name: 'key', prefix: 'ing_live_abcd' },
      hash: `${newId()}${newId()}`.replaceAll('-', ''),
      scopes: ['ingest'],
      endpoint_ids: null,
      origins: null,
    })
    await applyChange(async (db, since_epoch) => {
      for (let made = 0; made < keyCount; made += 1) await insertApiKey(db, newKey(), Date.now())
      for (const id of endpoints) {
        await insertEndpoint(db, account, { id, region: 'loc', label: newLabel(12), since_epoch, ...settings }, Date.now())
      }
    })

    const never = new AbortController().signal

    /** Returns the time of control and of the node for one update in milliseconds, and its size in bytes. */
    const update = async (node: SnapshotSections) => {
      const have = node.versions()
      const request = { node_id, epoch: node.current?.epoch ?? -1, kinds, have, wait_ms: 0 }
      const startedAt = performance.now()
      const lines = await snapshots.poll(request, never)
      const controlMs = performance.now() - startedAt
      if (lines === undefined) return { bytes: 0, controlMs, nodeMs: 0 }
      const bytes = Buffer.concat(lines)
      const receivedAt = performance.now()
      for (const each of parseUpdates(bytes)) node.apply(each)
      return { bytes: bytes.byteLength, controlMs, nodeMs: performance.now() - receivedAt }
    }
    const figures = async (work: string, node: SnapshotSections) => {
      const { bytes, controlMs, nodeMs } = await update(node)
      return [
        cost({ work: `${work}: size`, unit: 'KiB', ours: bytes / 1024 }),
        cost({ work: `${work}: time of control`, unit: 'ms', ours: controlMs }),
        cost({ work: `${work}: time of a node`, unit: 'ms', ours: nodeMs }),
      ]
    }

    const node = new SnapshotSections(kinds)
    yield* await figures('full snapshot, built', node)
    yield* await figures('full snapshot, again', new SnapshotSections(kinds))
    await applyChange((db) =>
      updateEndpoint(db, account, must(endpoints[0], 'an endpoint'), { segment_bytes: 9_000_000 }, Date.now()),
    )
    yield* await figures('one changed endpoint', node)
    await applyChange((db) => insertApiKey(db, newKey(), Date.now()))
    yield* await figures('one new key', node)
    const startedAt = performance.now()
    for (let poll = 0; poll < polls; poll += 1) await update(node)
    yield cost({ work: 'poll without changes', unit: 'ms', ours: (performance.now() - startedAt) / polls })
    yield cost({ work: 'poll without changes: request', unit: 'KiB', ours: JSON.stringify(node.versions()).length / 1024 })
  },
}
