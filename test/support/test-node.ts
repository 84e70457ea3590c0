/** A node as control sees one: it speaks `/internal/v1` and does nothing else. */
import { expect } from 'vitest'
import { isoTimestamp } from '#lib/clock.ts'
import { commitId, type SegmentCommit } from '#model/commit.ts'
import { newId } from '#model/id.ts'
import { Snapshot } from '#model/snapshot.ts'
import { type Answer, nodeToken, type TestControl } from './control.ts'

export class TestNode {
  readonly id = newId()
  readonly region: string
  readonly #control: TestControl

  private constructor(control: TestControl, region: string) {
    this.#control = control
    this.region = region
  }

  static async register(control: TestControl, region: string, more: object = {}): Promise<TestNode> {
    const node = new TestNode(control, region)
    const place = { node_id: node.id, region, ipv4: ['127.0.0.1'], ipv6: ['::1'], ingest_address: '127.0.0.1:9999', ...more }
    expect(await node.call('POST', 'register', place)).toMatchObject({ status: 200, body: { epoch: expect.any(Number) } })
    return node
  }

  call(method: string, path: string, body?: unknown, token = nodeToken): Promise<Answer> {
    return this.#control.call(method, `/internal/v1/${path}`, body, { authorization: `Bearer ${token}` })
  }

  askSnapshot(after = -1, waitMs = 0): Promise<Answer> {
    return this.call('GET', `snapshot?node_id=${this.id}&after=${after}&wait_ms=${waitMs}`)
  }

  async snapshot(after = -1, waitMs = 0): Promise<Snapshot> {
    const answer = await this.askSnapshot(after, waitMs)
    expect(answer.status).toBe(200)
    return Snapshot.parse(answer.body)
  }

  /** Both processes say that they are well and work by the newest epoch, unless told otherwise. */
  async heartbeat(ingest: object = {}, delivery: object = {}): Promise<void> {
    const { epoch } = await this.snapshot()
    const well = { node_id: this.id, applied_epoch: epoch, healthy: true, reasons: [] }
    expect(await this.call('POST', 'heartbeat', { process: 'ingest', ...well, ...ingest })).toMatchObject({ status: 204 })
    expect(await this.call('POST', 'heartbeat', { process: 'delivery', ...well, lag: [], ...delivery })).toMatchObject({
      status: 204,
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
