/**
 * Connections to whichever of several Postgres servers is the primary.
 *
 * Owns: which server is used. Does not own: finding out that it is no longer fit (server-pool.ts), repeating what failed.
 * Law: connections of one server are used at a time. Once it is left, its connections are closed as they become free.
 */
import type { PostgresPool, PostgresPoolClient } from 'kysely'
import { ServerPool } from './server-pool.ts'

/** The pool is used up: the server works, so another one would not help. */
const isBusy = (error: unknown) => error instanceof Error && error.message === 'timeout exceeded when trying to connect'

export type PrimaryPoolOptions = {
  readonly urls: readonly [string, ...string[]]
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

  constructor(options: PrimaryPoolOptions) {
    this.#options = options
    this.#server = this.#open(options.urls[0])
  }

  /** Tries each server once, beginning with the one that was the primary last. */
  async connect(): Promise<PostgresPoolClient> {
    const { length } = this.#options.urls
    for (let attempts = 1; ; attempts += 1) {
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

  /** Uses the next server from now on. With a single address that may be another machine, too. */
  #leave(server: ServerPool): void {
    if (server !== this.#server) return
    const { urls } = this.#options
    this.#index = (this.#index + 1) % urls.length
    this.#server = this.#open(urls[this.#index] ?? urls[0])
    const ended = server.end().finally(() => this.#left.delete(ended))
    this.#left.add(ended)
  }

  #open(url: string): ServerPool {
    const { onConnectionLost } = this.#options
    const server = new ServerPool({ url, onConnectionLost, onUnfit: () => this.#leave(server) })
    return server
  }
}
