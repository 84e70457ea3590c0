/** A node as control sees it: it uses `/internal/v1` and does nothing else. */
import { expect } from 'vitest'
import { newNodeSecret, printNodeCredential } from '#auth/node-credential.ts'
import { must } from '#lib/assert.ts'
import { isoTimestamp } from '#lib/clock.ts'
import { commitId, type SegmentCommit } from '#model/commit.ts'
import { newId } from '#model/id.ts'
import type { Snapshot } from '#model/snapshot.ts'
import type { SectionKind } from '#model/snapshot-sections.ts'
import { parseUpdates, SnapshotSections, type SnapshotUpdate } from '#node/snapshot-sections.ts'
import { type Answer, nodeToken, type TestControl } from './control.ts'

export const everyKind: readonly SectionKind[] = ['installation', 'keys', 'endpoints', 'views']

export class TestNode {
  readonly id = newId()
  readonly region: string
  secret = newNodeSecret()
  #control: TestControl
  readonly #sections = new SnapshotSections(everyKind)

  private constructor(control: TestControl, region: string) {
    this.#control = control
    this.region = region
  }

  /** Uses another control from now on. */
  at(control: TestControl): this {
    this.#control = control
    return this
  }

  static async register(control: TestControl, region: string, more: object = {}): Promise<TestNode> {
    const node = new TestNode(control, region)
    await node.registerAgain(more)
    return node
  }

  async registerAgain(more: object = {}): Promise<void> {
    const addresses = { ipv4: ['127.0.0.1'], ipv6: ['::1'], ingest_address: '127.0.0.1:9999' }
    const place = { region: this.region, ...addresses, ...more }
    expect(await this.join(place)).toMatchObject({ status: 200, body: { joined: true } })
  }

  /** Asks for its id, as a node does that control does not know. */
  join(more: object = {}, token = nodeToken): Promise<Answer> {
    const addresses = { ipv4: [], ipv6: [], ingest_address: '127.0.0.1:9999' }
    const request = { node_id: this.id, region: this.region, secret: this.secret, previous_secret: null, ...addresses, ...more }
    return this.call('POST', 'join', request, token)
  }

  call(method: string, path: string, body?: unknown, token = printNodeCredential(this.id, this.secret)): Promise<Answer> {
    return this.#control.call(method, `/internal/v1/${path}`, body, { authorization: `Bearer ${token}` })
  }

  /** Fetches the sections that differ from those the node has. */
  askSnapshot(waitMs = 0, kinds: readonly SectionKind[] = everyKind): Promise<Answer> {
    const { current } = this.#sections
    const have = this.#sections.versions()
    const position = current?.position && { position: current.position }
    const epoch = current?.epoch ?? -1
    return this.call('POST', 'snapshot', { node_id: this.id, epoch, ...position, kinds, have, wait_ms: waitMs })
  }

  /** The newest snapshot that it fetched. */
  get current(): Snapshot {
    return must(this.#sections.current, 'a snapshot')
  }

  get digest(): string {
    return this.#sections.digest
  }

  /** Asks control whether it has the newest sections. */
  async isCurrent(): Promise<boolean> {
    const check = { node_id: this.id, kinds: everyKind, digest: this.digest }
    const { status, body } = await this.call('POST', 'snapshot/check', check)
    expect(status).toBe(200)
    return body.is_current
  }

  /** Waits for sections that differ and merges them. */
  async update(waitMs = 0): Promise<SnapshotUpdate | undefined> {
    const { status, body } = await this.askSnapshot(waitMs)
    if (status === 204) return undefined
    expect(status).toBe(200)
    const [update] = parseUpdates(Buffer.from(body))
    if (update !== undefined) this.#sections.apply(update)
    return update
  }

  /** Fetches changed sections and returns the newest snapshot. */
  async snapshot(waitMs = 0): Promise<Snapshot> {
    await this.update(waitMs)
    return must(this.#sections.current, 'a snapshot')
  }

  /** Both processes report that they are healthy and have applied the newest epoch, unless the test says otherwise. */
  async heartbeat(ingest: object = {}, delivery: object = {}): Promise<void> {
    const { epoch } = await this.snapshot()
    const well = { node_id: this.id, applied_epoch: epoch, healthy: true, reasons: [] }
    expect(
      await this.call('POST', 'heartbeat', { process: 'ingest', ...well, disk_full: false, blocked: [], ...ingest }),
    ).toMatchObject({
      status: 200,
    })
    expect(await this.call('POST', 'heartbeat', { process: 'delivery', ...well, lag: [], ...delivery })).toMatchObject({
      status: 200,
    })
  }
}

export function aCommit(node_id: string, endpoint_id: string, seq: number, more: Partial<SegmentCommit> = {}): SegmentCommit {
  const log = 'abcdefghij'
  const id = commitId(node_id, log, seq)
  const now = isoTimestamp(Date.now())
  return {
    ...{ id, endpoint_id, node_id, log, seq },
    records: 10,
    records_damaged: 3,
    wal_bytes: 1000,
    sealed_at: now,
    uploaded_at: now,
    duration_ms: 5,
    destination: { id: newId(), bucket: 'lake', region: 'eu-central-1' },
    artifacts: { parquet: { key: `p/${id}.parquet`, bytes: 400, rows: 10, sha256: 'ab' } },
    views: [],
    ...more,
  }
}
