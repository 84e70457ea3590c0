/**
 * The requests that lost nodes stored, which this node knows since it has taken over from them: a directory for each takeover.
 *
 * Owns: which directories there are, and whose they are. Does not own: who writes them (adopted/hand-over.ts), and files of requests (request-files.ts).
 * Law: what a lost node stored is answered with its receipt, for as long as that node would have. These requests take no room from those of
 * this node: nobody can refuse them, and a takeover must not have new ones refused. They have a bound of their own.
 */
import type { Buffer } from 'node:buffer'
import { basename, dirname, join } from 'node:path'
import { errorMessage } from '#lib/error-message.ts'
import { type DirectoryEntry, errorCode } from '#lib/files.ts'
import { isUuid } from '#lib/uuid.ts'
import { idempotencyLimits } from '#model/limits.ts'
import { RequestFiles, type RequestFilesOptions, UnreadableRequestsError } from './request-files.ts'
import { STORED_REQUEST_BYTES, type StoredRequest } from './stored-request.ts'

export type AdoptedRequestsOptions = Omit<RequestFilesOptions, 'title' | 'onOpened' | 'onRemoved'> & {
  /** How many are known at most. */
  readonly max: number
}

/** `isOnDisk`: the disk of the node was adopted, not its copies. */
type Adopted = { readonly nodeId: string; readonly isOnDisk: boolean; readonly requests: RequestFiles }

const title = 'adopted-requests'
const idLength = 36

export class AdoptedRequests {
  readonly #options: AdoptedRequestsOptions
  readonly #nodes = new Map<string, Adopted>()
  /** Directories that are not opened: with them, more than `max` would be known. */
  readonly #tooLarge = new Set<string>()
  /** Why the directory cannot be listed. */
  #unreadable: string | undefined
  #count = 0

  constructor(options: AdoptedRequestsOptions) {
    this.#options = options
  }

  get count(): number {
    return this.#count
  }

  get indexBytes(): number {
    return this.#sum(({ indexBytes }) => indexBytes)
  }

  get damaged(): number {
    return this.#sum(({ damaged }) => damaged)
  }

  get isReadable(): boolean {
    return this.#unreadable === undefined && this.#all().every(({ isReadable }) => isReadable)
  }

  /** Why a request that was stored may not be found, and what to do. */
  problems(): readonly string[] {
    const unreadable = `the directory ${title} (idempotency keys of lost nodes) cannot be read (${this.#unreadable}): requests with an idempotency key are refused unless they are found elsewhere; make it readable`
    return [...(this.#unreadable === undefined ? [] : [unreadable]), ...this.#all().flatMap((requests) => requests.problems())]
  }

  /** Why requests are stored again, and what to do. */
  unknown(): readonly string[] {
    return [...this.#tooLarge].map(
      (name) =>
        `${title}/${name}: idempotency keys of a lost node are not known, because there are more than INLET_IDEMPOTENCY_KEYS_MAX of lost nodes: requests that are repeated with them are stored again; raise it, and restart the node`,
    )
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

  /** Opens what is new, and what could not be read. Removes what is old. Throws if the disk fails, once it has looked after all of them. */
  async refresh(): Promise<void> {
    const failures: unknown[] = []
    const entries = await this.#list()
    for (const entry of entries ?? [])
      await this.#refreshEntry(entry).catch((error: unknown) => {
        failures.push(error)
      })
    // Not before: until then, a request may be in a file that is not open yet.
    if (entries !== undefined) this.#unreadable = undefined
    if (failures.length > 0) throw failures[0]
  }

  /** Throws UnreadableRequestsError if it is not found, and may be where nothing can be read. */
  async find(id: Buffer): Promise<(StoredRequest & Pick<Adopted, 'nodeId' | 'isOnDisk'>) | undefined> {
    let hidden: UnreadableRequestsError | undefined
    for (const { requests, ...origin } of this.#nodes.values()) {
      try {
        const found = await requests.find(id)
        if (found !== undefined) return { ...found, ...origin }
      } catch (error) {
        if (!(error instanceof UnreadableRequestsError)) throw error
        hidden = error
      }
    }
    if (this.#unreadable !== undefined) hidden = new UnreadableRequestsError()
    if (hidden !== undefined) throw hidden
    return undefined
  }

  async close(): Promise<void> {
    for (const requests of this.#all()) {
      await requests.writeCounts(true).catch(() => undefined)
      await requests.close()
    }
  }

  /** Returns undefined if it cannot be listed. */
  async #list(): Promise<readonly DirectoryEntry[] | undefined> {
    const { directory, files, logger } = this.#options
    try {
      const entries = await files.list(directory)
      return entries.filter(({ kind }) => kind === 'directory')
    } catch (error) {
      if (this.#unreadable === undefined)
        logger.error({ err: error, path: directory }, 'idempotency keys of lost nodes cannot be read; retrying')
      this.#unreadable = errorCode(error) ?? errorMessage(error)
      return undefined
    }
  }

  async #refreshEntry({ name }: DirectoryEntry): Promise<void> {
    const nodeId = name.slice(0, idLength)
    const known = this.#nodes.get(name)
    if (known === undefined && !(isUuid(nodeId) && (await this.#hasRoomFor(name)))) return await this.#removeStale(name)
    const requests = known?.requests ?? (await this.#open(name))
    if (known === undefined) this.#nodes.set(name, { nodeId, isOnDisk: name.startsWith('-disk-', idLength), requests })
    else await requests.refresh()
    await requests.removeOld()
    await requests.writeCounts()
    if (requests.isReadable && requests.hours.size === 0) await this.#removeEmpty(name)
  }

  async #open(name: string): Promise<RequestFiles> {
    const add = (counts: ReadonlyMap<string, number>, sign: 1 | -1) => {
      for (const count of counts.values()) this.#count += sign * count
    }
    const requests = new RequestFiles({
      ...this.#options,
      ...{ directory: join(this.#options.directory, name), title: `${title}/${name}` },
      onOpened: (counts) => add(counts, 1),
      onRemoved: (counts) => add(counts, -1),
    })
    await requests.prepare()
    return requests
  }

  async #hasRoomFor(name: string): Promise<boolean> {
    const { directory, files, max, logger } = this.#options
    let bytes = 0
    for (const entry of await files.list(join(directory, name)).catch(() => []))
      if (entry.name.endsWith('.requests'))
        bytes += (await files.bytes(join(directory, name, entry.name)).catch(() => undefined)) ?? 0
    if (this.#count + bytes / STORED_REQUEST_BYTES <= max) {
      this.#tooLarge.delete(name)
      return true
    }
    if (!this.#tooLarge.has(name))
      logger.error({ path: join(directory, name) }, 'idempotency keys of a lost node exceed the bound')
    this.#tooLarge.add(name)
    return false
  }

  /** Removes a hand-over that was not finished, or that is not opened, once nobody repeats its requests any more. */
  async #removeStale(name: string): Promise<void> {
    const { directory, files, clock } = this.#options
    const path = join(directory, name)
    const changedAt = await files.changedAt(path)
    if (changedAt === undefined || changedAt >= clock.surelyBefore(idempotencyLimits.rememberedMs)) return
    await files.removeTree(path)
    this.#tooLarge.delete(name)
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
