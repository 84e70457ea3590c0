/**
 * Connections to whichever of several Postgres servers is the primary.
 *
 * Owns: which server is used. Does not own: finding out that it is no longer fit (server-pool.ts, timelines.ts), repeating what failed.
 * Law: connections of one server are used at a time. Once it is left, its connections are closed as they become free, and at once if it is
 * older than another one.
 */
import type { PostgresPool, PostgresPoolClient } from 'kysely'
import { ServerPool } from './server-pool.ts'
import { type ServerState, surveyForUse } from './server-survey.ts'
import { compare, type KnownTimelines } from './timelines.ts'

/** The pool is used up: the server works, so another one would not help. */
const isBusy = (error: unknown) => error instanceof Error && error.message === 'timeout exceeded when trying to connect'

export type PrimaryPoolOptions = {
  readonly urls: readonly [string, ...string[]]
  readonly known: KnownTimelines
  /** Called when an idle connection is lost. The pool opens a new one on demand. */
  readonly onConnectionLost: (error: Error) => void
}

export class PrimaryPool implements PostgresPool {
  /** Kysely wants to see it. */
  readonly options = {}
  readonly #options: PrimaryPoolOptions
  #server: ServerPool
  #index = 0
  readonly #left = new Set<Promise<void>>()
  /** Whether the servers were compared since the last one was left. */
  #isChosen: boolean
  #choosing: Promise<void> | undefined

  constructor(options: PrimaryPoolOptions) {
    this.#options = options
    this.#server = this.#open(options.urls[0])
    this.#isChosen = options.urls.length === 1
    options.known.subscribe(() => this.#leaveOlder())
  }

  /** Whether the server at this place in the URL is used. */
  isUsing(index: number): boolean {
    return index === this.#index
  }

  /** Tries each server once, beginning with the newest that takes writes. */
  async connect(): Promise<PostgresPoolClient> {
    const { length } = this.#options.urls
    for (let attempts = 1; ; attempts += 1) {
      if (!this.#isChosen) await this.#chooseOnce()
      const server = this.#server
      try {
        return await server.connect()
      } catch (error) {
        const wasLeft = server !== this.#server
        if (attempts > length || (!wasLeft && (attempts === length || isBusy(error)))) throw error
        this.#leave(server)
      }
    }
  }

  async end(): Promise<void> {
    await Promise.all([this.#server.end(), ...this.#left])
  }

  /** Callers that wait for the same choice share it. */
  #chooseOnce(): Promise<void> {
    this.#choosing ??= this.#choose().finally(() => {
      this.#choosing = undefined
    })
    return this.#choosing
  }

  /** Takes the newest server that takes writes. Of several that are as new, the one whose turn it is. Throws why there is none. */
  async #choose(): Promise<void> {
    const { urls, known } = this.#options
    const found = await surveyForUse(urls, known)
    const turns = urls.map((_, turn) => (this.#index + turn) % urls.length)
    const writable = turns.filter((index) => found[index]?.state === 'writable')
    const [best] = writable.toSorted((a, b) => compareStates(found[b], found[a]))
    if (best === undefined) throw mostTelling(found)
    this.#isChosen = true
    if (best !== this.#index) this.#use(best)
  }

  #leaveOlder(): void {
    if (!this.#options.known.isOlder(this.#server.standing)) return
    const server = this.#server
    this.#leave(server)
    server.discardAll()
  }

  /** Uses another server from now on. With a single address that may be another machine, too. */
  #leave(server: ServerPool): void {
    if (server !== this.#server) return
    const { urls } = this.#options
    this.#isChosen = urls.length === 1
    this.#use((this.#index + 1) % urls.length)
  }

  #use(index: number): void {
    const { urls } = this.#options
    const left = this.#server
    this.#index = index
    this.#server = this.#open(urls[index] ?? urls[0])
    const ended = left.end().finally(() => this.#left.delete(ended))
    this.#left.add(ended)
  }

  #open(url: string): ServerPool {
    const { known, onConnectionLost } = this.#options
    const server = new ServerPool({ url, known, onConnectionLost, onUnfit: () => this.#leave(server) })
    return server
  }
}

function compareStates(a: ServerState | undefined, b: ServerState | undefined): number {
  return a?.standing === undefined || b?.standing === undefined ? 0 : compare(a.standing, b.standing)
}

/** Returns why no server is used: what one said that could be reached, rather than that another one could not. */
function mostTelling(found: readonly (ServerState | undefined)[]): unknown {
  for (const state of ['older', 'standby', 'unreachable'] as const) {
    const server = found.findLast((each) => each?.state === state)
    if (server !== undefined) return server.error
  }
  return new Error('Connection terminated')
}
