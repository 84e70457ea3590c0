import { mkdtemp, rm } from 'node:fs/promises'
import { createServer, type ServerResponse } from 'node:http'
import { request } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { parseNodeCredential } from '#auth/node-credential.ts'
import { apiKeyOf } from '#auth/secrets.ts'
import { readConfig } from '#config/config.ts'
import type { Fence } from '#errors.ts'
import { type App, startIngest } from '#ingest/app.ts'
import { type Clock, systemClock } from '#lib/clock.ts'
import { type Files, systemFiles } from '#lib/files.ts'
import { system } from '#lib/system.ts'
import { createLogger } from '#lib/telemetry.ts'
import { LocalSegmentSource } from '#log/local/segment-source.ts'
import type { Scope } from '#model/api-key.ts'
import { listKeys, type SegmentCommit } from '#model/commit.ts'
import { newId } from '#model/id.ts'
import { LeftOnDisk } from '#model/left-on-disk.ts'
import { segmentLimits } from '#model/limits.ts'
import {
  CommitBatch,
  CommitLookup,
  type CommitsFound,
  type DeliveredFound,
  DeliveredLookup,
  Heartbeat,
  type IssuedCertificate,
  KeyUseReport,
  SeriesReport,
  UsageReport,
  type UsageTotals,
} from '#model/node-protocol.ts'
import { effectiveQuotas, NodeQuotas } from '#model/quota.ts'
import { decodeEnvelope, type RecordEnvelope } from '#model/record-envelope.ts'
import { type ScrubCommits, ScrubCommitsRequest } from '#model/scrub.ts'
import { digestSections } from '#model/section-digest.ts'
import type { Snapshot, SnapshotEndpoint, SnapshotKey } from '#model/snapshot.ts'
import { SnapshotCheck, SnapshotRequest } from '#model/snapshot-sections.ts'
import { parseUpdates } from '#node/snapshot-sections.ts'

import { watchText } from './secrets-in-output.ts'
import { snapshotLines } from './snapshot-lines.ts'
import { until } from './until.ts'
import { useOne } from './use-one.ts'

export const nodeToken = 'a-node-token-of-the-tests-0123456789'

/** Returns a key that every test knows. Each `letter` gives another one. */
export function secretOf(letter: string): string {
  return `ing_live_${letter.repeat(32)}`
}

/** Returns the account for this letter, from a to f. */
export function accountId(letter: string): string {
  return `${letter.repeat(8)}-${letter.repeat(4)}-4${letter.repeat(3)}-a${letter.repeat(3)}-${letter.repeat(12)}`
}

/** The same secret gives the same key, so that snapshots with it do not revoke it. */
export function aKey(change: Partial<SnapshotKey> & { readonly secret?: string; readonly scopes?: Scope[] } = {}): SnapshotKey {
  const { secret = secretOf('a'), ...rest } = change
  const { hash } = apiKeyOf(secret)
  const id = `${hash.slice(0, 8)}-${hash.slice(8, 12)}-4${hash.slice(12, 15)}-a${hash.slice(15, 18)}-${hash.slice(18, 30)}`
  return { id, account_id: accountId('a'), hash, scopes: ['ingest'], endpoint_ids: null, origins: null, name: 'a key', ...rest }
}

export function anEndpoint(change: Partial<SnapshotEndpoint> = {}): SnapshotEndpoint {
  return {
    id: newId(),
    account_id: accountId('a'),
    account_suspended: false,
    account_weight: 1,
    account_quotas: NodeQuotas.parse(effectiveQuotas({})),
    ingest_host: '127.0.0.1:8081',
    desired_state: 'active',
    segment_bytes: segmentLimits.bytesDefault,
    segment_max_age_seconds: 3600,
    output_formats: ['parquet'],
    mqtt_config: null,
    kept_headers: [],
    kept_fields: [],
    copies: 1,
    destination: null,
    views: [],
    committed_seq: -1,
    ...change,
  }
}

export function aSnapshot(change: Partial<Snapshot> = {}): Snapshot {
  return {
    epoch: 1,
    region: 'loc',
    keys: [aKey()],
    revoked_keys: [],
    jwks: { keys: [] },
    token_issuer: 'http://control.test',
    certificate: null,
    endpoints: [anEndpoint()],
    ...change,
  }
}

/** Any node that has a credential: the tests of control are about which. */
function isKnownNode(authorization: string): boolean {
  return parseNodeCredential(authorization.slice('Bearer '.length)) !== undefined
}

/** Stands in for control: serves `/internal/v1` to a node. */
export class ControlStandIn implements AsyncDisposable {
  readonly heartbeats: Heartbeat[] = []
  readonly registered: unknown[] = []
  readonly usage: UsageReport[] = []
  /** Keys in use, in the order of the reports. */
  readonly usedKeys: string[] = []
  readonly series: SeriesReport[] = []
  deliveredLookups = 0
  /** The last question which segments are delivered. */
  segmentsInQuestion: DeliveredLookup['segments'] = []
  /** Reported nodes of the region, and bytes that other nodes accepted for every account. */
  usageElsewhere = { nodes: 1, bytes: 0 }
  /** Reported time for DNS: 0 if none is managed. */
  mayStopInSeconds: number | null = 0
  /** How far its clock is ahead of that of the machine; undefined if it does not say the time. */
  timeAheadMs: number | undefined
  /** In order of arrival. */
  readonly commits: SegmentCommit[] = []
  /** By id. */
  readonly destinations = new Map<string, unknown>()
  /** Certificate that it hands to nodes; undefined for none. */
  certificate: IssuedCertificate | undefined
  /** Whether it closes every connection without a response. */
  isAway = false
  /** How often a process asked whether its configuration is the newest, and was told that it is not. */
  outdatedChecks = 0
  /** Why it refuses the credential of the node; undefined if it does not. */
  fence: Fence | undefined
  /** Calls that it refused because of that. */
  fenced = 0
  /** Reports of the fenced node about its disk. */
  readonly left: LeftOnDisk[] = []
  /** Whether it does not know the node. */
  isUnknown = false
  /** Calls with a credential that it did not accept. */
  refused = 0
  /** Whether it rejects commits. */
  refusesCommits = false
  /** Whether it does not say which files commits have. */
  refusesScrubs = false
  /** Does not say which commits it has. */
  refusesLookups = false
  /** Changes what it says about the files of commits, as after a compaction. */
  changeScrub: (page: ScrubCommits) => ScrubCommits = (page) => page
  #snapshot: Snapshot | undefined
  #isSlow = false
  readonly #waiting = new Map<ServerResponse, SnapshotRequest>()
  readonly #server = createServer((request, response) => {
    const url = new URL(request.url ?? '', 'http://control')
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const body = Buffer.concat(chunks).toString()
      if (this.isAway) request.socket.destroy()
      else if (this.fence !== undefined && url.pathname === '/internal/v1/left-on-disk') {
        this.left.push(LeftOnDisk.parse(JSON.parse(body)))
        response.end(JSON.stringify({ losses: 0 }))
      } else if (this.fence !== undefined) {
        this.fenced += 1
        response.writeHead(401).end(JSON.stringify({ detail: 'refused', fence: this.fence }))
      } else if (this.isUnknown || !isKnownNode(request.headers.authorization ?? '')) {
        this.refused += 1
        response.writeHead(401).end()
      } else if (url.pathname === '/internal/v1/register') {
        this.registered.push(JSON.parse(body))
        response.end(JSON.stringify({ epoch: this.#snapshot?.epoch ?? 0 }))
      } else if (url.pathname === '/internal/v1/heartbeat' && request.method === 'GET') {
        response.end(JSON.stringify({ seconds_ago: null, ...this.#time() }))
      } else if (url.pathname === '/internal/v1/heartbeat') {
        this.heartbeats.push(Heartbeat.parse(JSON.parse(body)))
        response.end(JSON.stringify({ may_stop_in_seconds: this.mayStopInSeconds, ...this.#time() }))
      } else if (url.pathname === '/internal/v1/usage') {
        this.usage.push(UsageReport.parse(JSON.parse(body)))
        response.end(JSON.stringify(this.#usageTotals()))
      } else if (url.pathname === '/internal/v1/key-use') {
        const { keys } = KeyUseReport.parse(JSON.parse(body))
        this.usedKeys.push(...keys)
        response.end(JSON.stringify({ recorded: keys.length }))
      } else if (url.pathname === '/internal/v1/series') {
        this.series.push(SeriesReport.parse(JSON.parse(body)))
        response.end(JSON.stringify({ recorded: true }))
      } else if (url.pathname.startsWith('/internal/v1/destinations/')) {
        const found = this.destinations.get(url.pathname.split('/').at(-1) ?? '')
        response.writeHead(found === undefined ? 404 : 200).end(JSON.stringify(found ?? {}))
      } else if (url.pathname === '/internal/v1/certificate') {
        response.writeHead(this.certificate === undefined ? 404 : 200).end(JSON.stringify(this.certificate ?? {}))
      } else if (url.pathname === '/internal/v1/jobs/lease') {
        response.end(JSON.stringify({ units: [], held: [], more: false }))
      } else if (url.pathname === '/internal/v1/adopt') response.writeHead(204).end()
      // Control believes only a machine that lost its place.
      else if (url.pathname === '/internal/v1/left-on-disk') response.writeHead(401).end()
      else if (url.pathname === '/internal/v1/commits' && this.refusesCommits) response.writeHead(503).end()
      else if (url.pathname === '/internal/v1/commits/lookup' && this.refusesLookups) response.writeHead(503).end()
      else if (url.pathname === '/internal/v1/commits/lookup') {
        response.end(JSON.stringify({ commits: this.#find(CommitLookup.parse(JSON.parse(body)).ids) }))
      } else if (url.pathname === '/internal/v1/commits/delivered') {
        response.end(JSON.stringify(this.#findDelivered(DeliveredLookup.parse(JSON.parse(body)))))
      } else if (url.pathname === '/internal/v1/scrub/commits' && this.refusesScrubs) response.writeHead(503).end()
      else if (url.pathname === '/internal/v1/scrub/commits') {
        response.end(JSON.stringify(this.changeScrub(this.#commitsToScrub(ScrubCommitsRequest.parse(JSON.parse(body))))))
      } else if (url.pathname === '/internal/v1/commits') {
        const { commits } = CommitBatch.parse(JSON.parse(body))
        this.commits.push(...commits)
        response.end(JSON.stringify({ recorded: commits.map(({ id }) => id), new: commits.length }))
      } else if (url.pathname === '/internal/v1/snapshot/check') {
        const is_current = this.#isCurrent(SnapshotCheck.parse(JSON.parse(body)))
        if (!is_current) this.outdatedChecks += 1
        response.end(JSON.stringify({ is_current }))
      } else if (url.pathname === '/internal/v1/committed-seqs') {
        const seqs = this.#snapshot?.endpoints.flatMap(({ id, committed_seq }) =>
          committed_seq < 0 ? [] : [[id, committed_seq]],
        )
        response.end(JSON.stringify({ seqs: Object.fromEntries(seqs ?? []) }))
      } else {
        const wanted = SnapshotRequest.parse(JSON.parse(body))
        const { epoch } = this.#snapshot ?? {}
        const have = Object.values(wanted.have ?? {})
        const isNew = wanted.epoch < 0 || have.every((version) => version !== `v${epoch}`)
        if (wanted.have === undefined) response.writeHead(409).end()
        else if (epoch !== undefined && isNew && !this.#isSlow) this.#send(response, wanted)
        else if (epoch !== undefined && !isNew && wanted.wait_ms === 0) response.writeHead(204).end()
        else {
          this.#waiting.set(response, wanted)
          response.on('close', () => this.#waiting.delete(response))
        }
      }
    })
  })

  static async start(): Promise<ControlStandIn> {
    const control = new ControlStandIn()
    await new Promise<void>((resolve) => control.#server.listen(0, '127.0.0.1', resolve))
    return control
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  publish(snapshot: Snapshot): void {
    this.#snapshot = snapshot
    if (!this.#isSlow) for (const [response, wanted] of this.#waiting) this.#send(response, wanted)
  }

  /** Delays what is published during `work` until its end. */
  async sendingSlowly(work: () => Promise<void>): Promise<void> {
    this.#isSlow = true
    await work()
    this.#isSlow = false
    for (const [response, wanted] of this.#waiting) this.#send(response, wanted)
  }

  #time(): { readonly time?: number } {
    return this.timeAheadMs === undefined ? {} : { time: Date.now() + this.timeAheadMs }
  }

  #isCurrent({ kinds, digest }: SnapshotCheck): boolean {
    if (this.#snapshot === undefined) return false
    return parseUpdates(snapshotLines(this.#snapshot, kinds)).some(({ sections }) => digestSections(sections) === digest)
  }

  #usageTotals(): UsageTotals {
    const { nodes, bytes: elsewhere } = this.usageElsewhere
    const accounts = this.usage.at(-1)?.accounts ?? []
    return {
      healthy_nodes: nodes,
      accounts: accounts.map(({ account_id, day, bytes }) => ({ account_id, day, bytes: bytes + elsewhere })),
    }
  }

  #findDelivered({ segments }: DeliveredLookup): DeliveredFound {
    this.deliveredLookups += 1
    this.segmentsInQuestion = segments
    const delivered = segments.flatMap((segment) => {
      const { endpoint_id, node_id, seq } = segment
      const isSame = (one: SegmentCommit) => one.endpoint_id === endpoint_id && one.node_id === node_id && one.seq === seq
      const commit = this.commits.find(isSame)
      return commit === undefined ? [] : [{ ...segment, commit_id: commit.id, keys: listKeys(commit.artifacts) }]
    })
    return { delivered }
  }

  #find(ids: readonly string[]): CommitsFound['commits'] {
    return this.commits
      .filter(({ id }) => ids.includes(id))
      .map(({ id, records, artifacts }) => ({ id, records, keys: listKeys(artifacts) }))
  }

  /** One page: the files of all commits, in the destination of their endpoint. */
  #commitsToScrub({ endpoint_id, after }: ScrubCommitsRequest): ScrubCommits {
    const target = this.#snapshot?.endpoints.find(({ id }) => id === endpoint_id)?.destination ?? null
    // A commit whose response was lost is sent again.
    const known = new Map(this.commits.map((commit) => [commit.id, commit]))
    const commits = [...known.values()].filter(
      (commit) => commit.endpoint_id === endpoint_id && commit.uploaded_at > (after ?? ''),
    )
    return {
      commits: commits.map(({ id, node_id, seq, sealed_at, uploaded_at, artifacts }) => ({
        ...{ id, node_id, seq, sealed_at, uploaded_at, target, merged: [] },
        files: Object.entries(artifacts).map(([kind, { key, bytes, sha256 }]) => ({ kind, key, bytes, sha256 })),
      })),
      is_last: true,
    }
  }

  #send(response: ServerResponse, { kinds }: SnapshotRequest): void {
    if (this.#snapshot !== undefined) response.end(snapshotLines(this.#snapshot, kinds))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections()
    await new Promise((resolve) => this.#server.close(resolve))
  }
}

export type StoredFrame = {
  readonly seq: number
  readonly layout: string
  readonly recordCount: number
  readonly payload: Buffer
}

/** A frame as a client's message: its payload and what its protocol adds. */
export type StoredMessage = StoredFrame & RecordEnvelope & { readonly receivedAtMicros: number }

export type IngestNodeOptions = {
  /** Undefined starts the node without a configuration. */
  readonly snapshot?: Snapshot | undefined
  readonly environment?: Readonly<Record<string, string>>
  readonly clock?: Clock
  readonly files?: Files
  /** The data directory of an earlier node. */
  readonly directory?: string
  /** An address without a listener simulates a control that is down. */
  readonly controlUrl?: string
}

/** Runs ingest inside the test process, with a real WAL in a directory of its own. */
export class IngestNode implements AsyncDisposable {
  readonly url: string
  /** The port of MQTT over TCP, if the environment configures one. */
  readonly mqttPort: number | undefined
  readonly directory: string
  readonly control: ControlStandIn
  readonly #app: App
  readonly #ownsDirectory: boolean
  #stopped: Promise<void> | undefined

  private constructor(made: { app: App; control: ControlStandIn; directory: string; ownsDirectory: boolean }) {
    this.#app = made.app
    this.url = made.app.url
    this.mqttPort = made.app.mqtt?.port
    this.control = made.control
    this.directory = made.directory
    this.#ownsDirectory = made.ownsDirectory
  }

  static async start(options: IngestNodeOptions = {}): Promise<IngestNode> {
    const { environment = {}, clock = systemClock, files = systemFiles } = options
    const snapshot = 'snapshot' in options ? options.snapshot : aSnapshot()
    const control = await ControlStandIn.start()
    if (snapshot !== undefined) control.publish(snapshot)
    const directory = options.directory ?? (await mkdtemp(join(tmpdir(), 'inlet-ingest-')))
    const config = readConfig({
      INLET_DATA_DIR: directory,
      INLET_NODE_TOKEN: nodeToken,
      INLET_CONTROL_URL: options.controlUrl ?? control.url,
      INLET_INGEST_LISTEN: '127.0.0.1:0',
      INLET_DISK_RESERVE_BYTES: '0B',
      INLET_LOG_LEVEL: 'silent',
      ...environment,
    })
    const app = await startIngest(config, {
      logger: createLogger('ingest', 'debug', undefined, { write: watchText('the log of ingest') }),
      clock,
      files,
    })
    const node = new IngestNode({ app, control, directory, ownsDirectory: options.directory === undefined })
    if (snapshot !== undefined) await node.until('/readyz', ({ status }) => status === 200)
    return node
  }

  /** Waits until a path returns the expected response. */
  async until(path: string, isExpected: (response: Response, body: string) => boolean): Promise<void> {
    await until(`the expected response of ${path}`, async () => {
      const response = await get(`${this.url}${path}`)
      return isExpected(response, await response.text())
    })
  }

  /** Publishes a snapshot and waits until the node has applied it. */
  async publish(snapshot: Snapshot): Promise<void> {
    this.control.publish(snapshot)
    await this.until('/metrics', (_, body) => body.includes(`\ninlet_applied_epoch{process="ingest"} ${snapshot.epoch}\n`))
  }

  async metric(name: string): Promise<number> {
    const body = await (await get(`${this.url}/metrics`)).text()
    const line = body.split('\n').find((candidate) => candidate.startsWith(`${name}{`))
    return Number(line?.split(' ').at(-1))
  }

  leave(): Promise<void> {
    return this.#app.leave()
  }

  stop(signal: AbortSignal = AbortSignal.timeout(10_000)): Promise<void> {
    this.#stopped ??= this.#app.stop(signal)
    return this.#stopped
  }

  /** Stops the node and returns everything in the WAL of an endpoint. */
  async stored(endpointId: string): Promise<readonly StoredFrame[]> {
    const frames = await this.frames(endpointId)
    return frames.map(({ seq, layout, recordCount, payload }) => ({ seq, layout, recordCount, payload }))
  }

  /** Like `stored`, with the receive time and the fields of the envelope. */
  async frames(endpointId: string): Promise<readonly StoredMessage[]> {
    await this.stop()
    const found: StoredMessage[] = []
    const segments = new LocalSegmentSource({ ...system, directory: join(this.directory, 'node', 'wal') })
    for (const segment of await segments.list()) {
      if (segment.logName !== endpointId) continue
      if (segment.state !== 'sealed') throw new Error(`segment ${segment.seq} is ${segment.state}`)
      const reader = await segments.open(segment)
      for await (const frames of reader.frames(1024 * 1024)) {
        for (const frame of frames) {
          const { layout, recordCount, receivedAtMicros } = frame
          const payload = Buffer.from(frame.payload)
          found.push({
            ...decodeEnvelope(frame.envelope),
            seq: reader.header.seq,
            layout,
            recordCount,
            receivedAtMicros,
            payload,
          })
        }
      }
      await reader.close()
    }
    return found
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop()
    await this.control[Symbol.asyncDispose]()
    if (this.#ownsDirectory) await rm(this.directory, { recursive: true, force: true })
  }
}

/** Starts one node for tests of a file or a suite that only look at what it responds: what it stored is read once it has stopped. */
export function useIngest(options?: IngestNodeOptions): () => IngestNode {
  return useOne(() => IngestNode.start(options))
}

/** Sends a GET request and accepts a self-signed certificate. Its connection is closed: a test with a clock of its own may let it expire. */
async function get(url: string): Promise<Response> {
  if (url.startsWith('http:')) return fetch(url, { headers: { connection: 'close' } })
  const { promise, resolve, reject } = Promise.withResolvers<Response>()
  request(url, { rejectUnauthorized: false, agent: false })
    .on('response', (answer) => {
      text(answer).then((body) => resolve(new Response(body, { status: answer.statusCode ?? 0 })), reject)
    })
    .on('error', reject)
    .end()
  return promise
}
