/**
 * Waits until records that are stored are in the bucket.
 *
 * Owns: one question for each segment, however many wait for it. Does not own: how records get to ingest (delivery.ts).
 * Law: any node of the region answers, so a node that ends is no failure.
 */
import { baseOf } from './address.ts'
import { Bound } from './bound.ts'
import type { Receipt } from './delivery.ts'
import { type Fetch, Sender } from './sender.ts'

/** The receipt of records that are in the bucket. `keys`: the objects that have them. */
export type CommittedReceipt = Receipt & { readonly commit_id: string; readonly keys: readonly string[] }

export type CommitWatchOptions = {
  readonly url: string | URL
  readonly apiKey: string
  readonly endpoint?: string | undefined
  readonly fetch: Fetch
  /** How long a segment is waited for, from its first receipt. */
  readonly timeoutMs: number
  readonly signal?: AbortSignal | undefined
}

/** One question waits this long. */
const askSeconds = 30
const pauseMs = 500

export class CommitWatch {
  readonly #options: CommitWatchOptions
  readonly #sender: Sender
  readonly #url: URL
  readonly #commits = new Map<string, Promise<CommittedReceipt>>()

  constructor(options: CommitWatchOptions) {
    this.#options = options
    this.#sender = new Sender({ fetch: options.fetch, retriesMax: Number.POSITIVE_INFINITY })
    this.#url = new URL('v1/ingest/receipts/', baseOf(options.url))
  }

  /** Rejects with a TimeoutError, or the error of the server: the records are stored, and may be delivered later. */
  committed(receipt: Receipt): Promise<CommittedReceipt> {
    const name = `${receipt.node_id}-${receipt.segment_seq}`
    const known = this.#commits.get(name)
    if (known !== undefined) return known
    const commit = this.#ask(receipt, name).finally(() => this.#commits.delete(name))
    this.#commits.set(name, commit)
    return commit
  }

  async #ask(receipt: Receipt, name: string): Promise<CommittedReceipt> {
    const { apiKey, endpoint, timeoutMs, signal } = this.#options
    const url = new URL(name, this.#url)
    if (endpoint !== undefined) url.searchParams.set('endpoint', endpoint)
    const bound = new Bound(`the records are stored: the commit of their segment, ${name},`, timeoutMs, signal)
    try {
      for (;;) {
        const seconds = Math.ceil(Math.min(askSeconds, bound.remainingMs / 1000))
        const headers = { 'x-api-key': apiKey, prefer: `wait=${seconds}` }
        const answer = await this.#sender.send({ method: 'GET', url, headers, isRepeatable: true }, bound)
        const { commit_id, keys } = { ...(answer as Partial<CommittedReceipt> | undefined) }
        if (commit_id !== undefined && keys !== undefined) return { ...receipt, commit_id, keys }
        // A node that stops answers at once.
        await bound.pause(pauseMs)
      }
    } finally {
      bound.release()
    }
  }
}
