/**
 * The requests that lost nodes stored, which this node knows since it has taken over from them: a directory for each takeover.
 *
 * Owns: which directories there are, and whose they are. Does not own: who writes them (adopted/hand-over.ts), and files of requests (request-files.ts).
 * Law: what a lost node stored is answered with its receipt, for as long as that node would have.
 */
import type { Buffer } from 'node:buffer'
import { basename, dirname, join } from 'node:path'
import { errorMessage } from '#lib/error-message.ts'
import { errorCode } from '#lib/files.ts'
import { isUuid } from '#lib/uuid.ts'
import { RequestFiles, type RequestFilesOptions } from './request-files.ts'
import type { StoredRequest } from './stored-request.ts'

export type AdoptedRequestsOptions = Omit<RequestFilesOptions, 'title'>

const title = 'adopted-requests'
const idLength = 36

export class AdoptedRequests {
  readonly #options: AdoptedRequestsOptions
  readonly #nodes = new Map<string, { readonly nodeId: string; readonly requests: RequestFiles }>()

  constructor(options: AdoptedRequestsOptions) {
    this.#options = options
  }

  get indexBytes(): number {
    return this.#sum(({ indexBytes }) => indexBytes)
  }

  get damaged(): number {
    return this.#sum(({ damaged }) => damaged)
  }

  get isReadable(): boolean {
    return this.#all().every(({ isReadable }) => isReadable)
  }

  problems(): readonly string[] {
    return this.#all().flatMap((requests) => requests.problems())
  }

  /** Calls when something may be new. Only a hint. Returns a function that stops it. */
  watch(onChange: () => void): () => void {
    const { directory, files, logger } = this.#options
    try {
      return files.watch(dirname(directory), (name) => {
        if (name === null || name === basename(directory)) onChange()
      })
    } catch (error) {
      logger.warn({ reason: errorMessage(error) }, 'idempotency keys of lost nodes are noticed late')
      return () => undefined
    }
  }

  /** Opens what is new, and what could not be read. Removes what is old. Throws if the disk fails. */
  async refresh(): Promise<void> {
    const { directory, files } = this.#options
    for (const { name, kind } of await files.list(directory)) {
      const nodeId = name.slice(0, idLength)
      if (kind !== 'directory' || !isUuid(nodeId)) continue
      const known = this.#nodes.get(name)
      const requests =
        known?.requests ?? new RequestFiles({ ...this.#options, directory: join(directory, name), title: `${title}/${name}` })
      // Files are added one by one while a node hands them over.
      await requests.refresh()
      this.#nodes.set(name, { nodeId, requests })
      await requests.removeOld()
      await requests.writeCounts()
      if (requests.isReadable && requests.hours.size === 0) await this.#removeEmpty(name)
    }
  }

  /** Throws UnreadableRequestsError. */
  async find(id: Buffer): Promise<(StoredRequest & { readonly nodeId: string }) | undefined> {
    for (const { nodeId, requests } of this.#nodes.values()) {
      const found = await requests.find(id)
      if (found !== undefined) return { ...found, nodeId }
    }
    return undefined
  }

  async close(): Promise<void> {
    for (const requests of this.#all()) {
      await requests.writeCounts(true).catch(() => undefined)
      await requests.close()
    }
  }

  /** One that is just being made has a file already. */
  async #removeEmpty(name: string): Promise<void> {
    const { directory, files } = this.#options
    try {
      await files.removeDirectory(join(directory, name))
    } catch (error) {
      if (errorCode(error) === 'ENOTEMPTY') return
      throw error
    }
    this.#nodes.delete(name)
  }

  #all(): readonly RequestFiles[] {
    return [...this.#nodes.values()].map(({ requests }) => requests)
  }

  #sum(part: (requests: RequestFiles) => number): number {
    return this.#all().reduce((sum, requests) => sum + part(requests), 0)
  }
}
