/** `inlet tail`: prints the latest records of an endpoint, and new ones as they are delivered. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Client } from '#client/client.ts'
import { ApiError, ConnectionError, TimeoutError } from '#client/errors.ts'
import type { Schemas } from '#client/generated/schema.ts'
import { openRemote } from '../remote/remote.ts'
import { findEndpoint } from '../resources/find.ts'
import type { CliContext } from '../terminal/context.ts'

export type TailFlags = {
  readonly lines: number
  readonly follow: boolean
  readonly contains?: string
  readonly interval: number
  readonly json: boolean
}

type Commit = Schemas['Commit']
type DeliveredRecord = Schemas['DeliveredRecord']

/** As many records of a segment as the API gives. */
const recordsMax = 100
const commitsPerPage = 50
/** After a pause, segments before these are not shown. */
const pagesMax = 10
/** More than a few pages, so that a segment is not shown twice. */
const rememberedMax = 5_000

export async function tail(this: CliContext, flags: TailFlags, nameOrId: string): Promise<void> {
  const { client } = await openRemote(this)
  const { id } = await findEndpoint(client, nameOrId)
  const stopping = new AbortController()
  const stop = () => stopping.abort()
  for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, stop)
  this.process.stdout.once('error', stop)
  try {
    await new Tail(this, client, id, flags, stopping.signal).run()
  } catch (error) {
    if (!stopping.signal.aborted) throw error
  } finally {
    for (const name of ['SIGINT', 'SIGTERM'] as const) process.off(name, stop)
    this.process.stdout.off('error', stop)
  }
}

class Tail {
  readonly #context: CliContext
  readonly #client: Client
  readonly #endpoint: string
  readonly #flags: TailFlags
  readonly #signal: AbortSignal
  /** Commits that are shown, or older than the first look; the oldest first. */
  readonly #seen = new Set<string>()
  /** Commits before this time are not new, although they were not seen. */
  #since = ''
  #isWaiting = false

  constructor(context: CliContext, client: Client, endpoint: string, flags: TailFlags, signal: AbortSignal) {
    this.#context = context
    this.#client = client
    this.#endpoint = endpoint
    this.#flags = flags
    this.#signal = signal
  }

  async run(): Promise<void> {
    const { lines, follow, interval } = this.#flags
    const signal = this.#signal
    const { items } = await this.#client.listCommits(this.#endpoint, { limit: commitsPerPage }, { signal })
    // A node that was cut off from control reports commits late: those are new too.
    this.#since = (items.length === commitsPerPage ? items.at(-1)?.uploaded_at : undefined) ?? ''
    for (const { id } of items) this.#remember(id)
    if (lines > 0) this.#print(await this.#records({ limit: lines }))
    while (follow) {
      await sleep(interval * 1000, undefined, { signal })
      await this.#showNew()
    }
  }

  /** Shows what was delivered since the last look. Waits where control is away. */
  async #showNew(): Promise<void> {
    try {
      for (const commit of await this.#newCommits()) {
        this.#print(await this.#records({ limit: recordsMax, node_id: commit.node_id, segment_seq: commit.seq }))
        this.#remember(commit.id)
        const rest = commit.records - recordsMax
        if (rest > 0 && this.#flags.contains === undefined)
          this.#note(`${rest} earlier records of segment ${commit.seq} are not shown: inlet query has them`)
      }
      this.#isWaiting = false
    } catch (error) {
      if (!isTransient(error)) throw error
      if (!this.#isWaiting) this.#note(`waiting: ${error.message}`)
      this.#isWaiting = true
    }
  }

  /** Returns commits that were not seen, the oldest first. */
  async #newCommits(): Promise<readonly Commit[]> {
    const found: Commit[] = []
    let pages = 0
    for await (const { items } of this.#client
      .listCommits(this.#endpoint, { limit: commitsPerPage }, { signal: this.#signal })
      .pages()) {
      const unseen = items.filter(({ id, uploaded_at }) => !this.#seen.has(id) && uploaded_at >= this.#since)
      found.push(...unseen)
      pages += 1
      if (unseen.length < items.length) break
      if (pages < pagesMax) continue
      this.#note('more segments were delivered than are shown')
      break
    }
    return found.toReversed()
  }

  async #records(query: { readonly limit: number; readonly node_id?: string; readonly segment_seq?: number }) {
    const { contains } = this.#flags
    const { items } = await this.#client.listRecords(this.#endpoint, { ...query, contains }, { signal: this.#signal })
    return items.toReversed()
  }

  #print(records: readonly DeliveredRecord[]): void {
    for (const record of records) {
      this.#remember(record.commit_id)
      this.#context.process.stdout.write(`${this.#flags.json ? JSON.stringify(record) : textOf(record)}\n`)
    }
  }

  #remember(commit_id: string): void {
    this.#seen.delete(commit_id)
    this.#seen.add(commit_id)
    for (const oldest of this.#seen) {
      if (this.#seen.size <= rememberedMax) break
      this.#seen.delete(oldest)
    }
  }

  #note(text: string): void {
    this.#context.process.stderr.write(`${text}\n`)
  }
}

/** Control characters could change the terminal. */
function textOf({ record, record_base64, is_cut }: DeliveredRecord): string {
  const text = record ?? `base64:${record_base64}`
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are meant
  return `${text.replaceAll(/[\u0000-\u0008\u000a-\u001f\u007f-\u009f]/g, ' ')}${is_cut ? '…' : ''}`
}

function isTransient(error: unknown): error is Error {
  if (error instanceof ConnectionError || error instanceof TimeoutError) return true
  return error instanceof ApiError && (error.status === 429 || error.status >= 500)
}
