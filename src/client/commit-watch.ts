/**
 * Waits until records that are stored are in the bucket.
 *
 * Owns: one question for each segment, however many wait for it. Does not own: how records get to ingest (delivery.ts).
 * Law: any node of the region answers, so one that ends, or does not answer, is no failure.
 */
import { baseOf } from './address.ts'
import { Bound } from './bound.ts'
import type { Receipt } from './delivery.ts'
import { isTransient } from './errors.ts'
import { type Fetch, Sender } from './sender.ts'

/** The receipt of records that are in the bucket. `keys`: the objects that have them. */
export type CommittedReceipt = Receipt & { readonly commit_id: string; readonly keys: readonly string[] }

export type CommitWatchOptions = {
  readonly url: string | URL
  readonly apiKey: string
  readonly endpoint?: string | undefined
  readonly fetch: Fetch
  /** Bound of one question, beside the wait of the node. */
  readonly requestTimeoutMs: number
  /** How long a segment is waited for, from its first receipt. */
  readonly timeoutMs: number
  readonly signal?: AbortSignal | undefined
}

/** One question waits this long, or half of the time that is left: so there is another one. */
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
    const { endpoint, timeoutMs, signal } = this.#options
    const url = new URL(name, this.#url)
    if (endpoint !== undefined) url.searchParams.set('endpoint', endpoint)
    const bound = new Bound(`the records are stored: the commit of their segment, ${name},`, timeoutMs, signal)
    try {
      for (;;) {
        const { commit_id, keys } = await this.#askOnce(url, bound)
        if (commit_id !== undefined && keys !== undefined) return { ...receipt, commit_id, keys }
        // A node that stops answers at once.
        await bound.pause(pauseMs)
      }
    } finally {
      bound.release()
    }
  }

  /** Returns nothing if there is no commit yet, or no answer. */
  async #askOnce(url: URL, bound: Bound): Promise<Partial<CommittedReceipt>> {
    const { apiKey, requestTimeoutMs } = this.#options
    const seconds = Math.ceil(Math.min(askSeconds, bound.remainingMs / 2000))
    const headers = { 'x-api-key': apiKey, prefer: `wait=${seconds}` }
    const question = new Bound('one question', seconds * 1000 + requestTimeoutMs, bound.signal)
    try {
      const answer = await this.#sender.send({ method: 'GET', url, headers, isRepeatable: true }, question)
      return { ...(answer as Partial<CommittedReceipt> | undefined) }
    } catch (error) {
      bound.throwIfOver(error)
      if (!isTransient(error)) throw error
      return {}
    } finally {
      question.release()
    }
  }
}
