/**
 * Sends events to many endpoints, one at a time, and finds out when their commits can be read.
 *
 * Owns: the schedule, and following segments to their commits. To leave the cores to Inlet, it follows at most 40 segments a second, reads the bucket
 * from its directory, and asks the API only for commits whose marker is there.
 */
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { isoTimestamp } from '#lib/clock.ts'
import type { Installation } from '../test/support/installation.ts'
import type { Marker } from '../test/support/markers.ts'

const followedMax = 40
const pollEveryMs = 10

export type CommitLoadOptions = {
  readonly installation: Installation
  /** Its destination has no prefix. */
  readonly bucket: string
  readonly endpointIds: readonly string[]
  /** How often each of them gets an event. */
  readonly everyMs: number
}

/** In milliseconds since the acknowledgement; NaN if it did not happen. */
export type CommitTimes = { readonly sealed: number; readonly marker: number; readonly readable: number }

type Followed = {
  readonly endpointId: string
  readonly nodeId: string
  readonly seq: number
  readonly acknowledgedAt: number
  marker?: { readonly sealedAt: number; readonly foundAt: number }
}

export class CommitLoad {
  readonly #options: CommitLoadOptions
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 64 })
  readonly #segments = new Set<string>()
  readonly #pending = new Set<Followed>()
  #times: CommitTimes[] = []

  constructor(options: CommitLoadOptions) {
    this.#options = options
  }

  /** Number of segments that it sent events to. */
  get segments(): number {
    return this.#segments.size
  }

  /**
   * Sends for that long: to each endpoint once in a while, at a random time, so that requests do not keep step with seals. While it ramps up,
   * more and more of the endpoints get events.
   */
  async send(ms: number, { rampMs = 0 } = {}): Promise<void> {
    const { endpointIds } = this.#options
    const everyMs = this.#options.everyMs / endpointIds.length
    const stride = Math.ceil(1000 / everyMs / followedMax)
    const startedAt = performance.now()
    const requests: Promise<void>[] = []
    const polling = new AbortController()
    const polls = this.#pollUntil(polling.signal)
    let order: readonly number[] = []
    for (let sent = 0; sent * everyMs < ms; sent += 1) {
      if (sent % endpointIds.length === 0) order = shuffled(endpointIds.keys())
      const at = order[sent % endpointIds.length] ?? 0
      const dueMs = startedAt + (sent + Math.random()) * everyMs - performance.now()
      if (dueMs > 1) await setTimeout(dueMs)
      if (sent * everyMs >= (at / endpointIds.length) * rampMs)
        requests.push(this.#post(endpointIds[at] ?? '', at % stride === 0))
    }
    await Promise.all(requests)
    polling.abort()
    await polls
  }

  /** Waits for the commits that it follows. Returns their times; those that are missing count as readable now. */
  async settle(timeoutMs: number): Promise<readonly CommitTimes[]> {
    await this.#pollUntil(AbortSignal.timeout(timeoutMs), () => this.#pending.size === 0)
    const now = Date.now()
    const missing = [...this.#pending].map(({ acknowledgedAt, marker }) => ({
      sealed: (marker?.sealedAt ?? Number.NaN) - acknowledgedAt,
      marker: (marker?.foundAt ?? Number.NaN) - acknowledgedAt,
      readable: now - acknowledgedAt,
    }))
    this.#pending.clear()
    const times = [...this.#times, ...missing]
    this.#times = []
    return times
  }

  close(): void {
    this.#agent.destroy()
  }

  async #post(endpointId: string, isFollowed: boolean): Promise<void> {
    const { ingestUrl, apiKey } = this.#options.installation
    const at = new Date().toISOString()
    const body = JSON.stringify({ id: crypto.randomUUID(), type: 'page_view', at, value: 12.5, text: 'x'.repeat(100) })
    const { promise, resolve, reject } = Promise.withResolvers<string>()
    const headers = { 'x-api-key': apiKey, 'content-type': 'application/json', 'content-length': body.length }
    const options = { method: 'POST', agent: this.#agent, headers }
    const outgoing = request(`${ingestUrl}/v1/ingest?endpoint=${endpointId}`, options, (response) => {
      let text = ''
      response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
      response.on('end', () =>
        response.statusCode === 202 ? resolve(text) : reject(new Error(`${response.statusCode} ${text}`)),
      )
    })
    outgoing.on('error', reject)
    outgoing.end(body)
    const { node_id: nodeId, segment_seq: seq } = JSON.parse(await promise)
    this.#segments.add(`${endpointId} ${seq}`)
    if (isFollowed) this.#pending.add({ endpointId, nodeId, seq, acknowledgedAt: Date.now() })
  }

  async #pollUntil(end: AbortSignal, isDone = () => false): Promise<void> {
    while (!end.aborted && !isDone()) {
      await Promise.all([...this.#pending].map((followed) => this.#poll(followed)))
      await setTimeout(pollEveryMs)
    }
  }

  async #poll(followed: Followed): Promise<void> {
    const { endpointId, nodeId, seq, acknowledgedAt } = followed
    const marker = followed.marker ?? this.#findMarker(followed)
    if (marker === undefined) return
    followed.marker = marker
    const { items } = await this.#options.installation.ok(
      'GET',
      `/v1/endpoints/${endpointId}/commits?node_id=${nodeId}&segment_seq=${seq}`,
    )
    if (items.length === 0) return
    this.#pending.delete(followed)
    this.#times.push({
      sealed: marker.sealedAt - acknowledgedAt,
      marker: marker.foundAt - acknowledgedAt,
      readable: Date.now() - acknowledgedAt,
    })
  }

  /** Returns undefined if the marker is not there. Throws if a file is not what the marker says. */
  #findMarker({ endpointId, seq, acknowledgedAt }: Followed): Followed['marker'] {
    const { installation, bucket } = this.#options
    const root = join(installation.buckets, bucket)
    const suffix = `-${String(seq).padStart(12, '0')}.json`
    for (const day of new Set([acknowledgedAt, Date.now()].map((at) => isoTimestamp(at).slice(0, 10)))) {
      const folder = join(root, endpointId, 'commits', `dt=${day}`)
      const name = existsSync(folder) ? readdirSync(folder).find((name) => name.endsWith(suffix)) : undefined
      if (name === undefined) continue
      const marker = JSON.parse(readFileSync(join(folder, name), 'utf8')) as Marker
      const files = Object.values(marker.artifacts)
      for (const { key, sha256 } of files) {
        const found = createHash('sha256')
          .update(readFileSync(join(root, key)))
          .digest('hex')
        if (found !== sha256) throw new Error(`${key} is not the file that its marker lists`)
      }
      if (!files.some(({ key }) => key.endsWith('.parquet'))) throw new Error(`${name} lists no Parquet file`)
      return { sealedAt: Date.parse(marker.sealed_at), foundAt: Date.now() }
    }
    return undefined
  }
}

function shuffled(numbers: Iterable<number>): readonly number[] {
  return [...numbers]
    .map((number) => ({ number, order: Math.random() }))
    .toSorted((a, b) => a.order - b.order)
    .map(({ number }) => number)
}
