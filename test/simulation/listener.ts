/** The place of the HTTP server among the services of ingest: it lets requests in, and waits for those that it let in. */

import type { Service } from '#lib/service.ts'
import { settlesBefore } from '#lib/settles-before.ts'

export class Listener implements Service {
  readonly name = 'http'
  isOpen = false
  readonly #open = new Set<object>()
  readonly #idle = Promise.withResolvers<void>()

  async start(): Promise<void> {
    this.isOpen = true
  }

  begin(request: object): void {
    this.#open.add(request)
  }

  /** It has its answer, or its client has left. */
  end(request: object): void {
    this.#open.delete(request)
    if (!this.isOpen && this.#open.size === 0) this.#idle.resolve()
  }

  async stop(signal: AbortSignal): Promise<void> {
    this.isOpen = false
    if (this.#open.size > 0) await settlesBefore(this.#idle.promise, signal)
  }
}
