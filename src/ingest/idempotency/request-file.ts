/**
 * The requests of one hour, in a file that only grows.
 *
 * Owns: the file and where each request is in it. Does not own: for how long it is kept (stored-requests.ts).
 * Law: what `append` was given survives a crash once `sync` has resolved. A torn end is cut when the file is opened.
 */
import { Buffer } from 'node:buffer'
import { dirname } from 'node:path'
import type { Files, OpenFile } from '#lib/files.ts'
import { DigestIndex } from './digest-index.ts'
import { decodeStoredRequest, encodeStoredRequest, STORED_REQUEST_BYTES, type StoredRequest } from './stored-request.ts'

const READ_REQUESTS = 4_096

export class RequestFile {
  readonly #file: OpenFile
  readonly #index = new DigestIndex()
  /** How many there are of each endpoint. */
  readonly counts = new Map<string, number>()
  #requests = 0
  #isSynced = true

  private constructor(file: OpenFile) {
    this.#file = file
  }

  static async open(files: Files, path: string): Promise<RequestFile> {
    const isNew = (await files.bytes(path)) === undefined
    const opened = new RequestFile(await files.open(path, isNew ? 'create' : 'update'))
    // Also for a file that exists: who created it may have died before its name was durable.
    await files.syncDirectory(dirname(path))
    if (!isNew) await opened.#load()
    return opened
  }

  get requests(): number {
    return this.#requests
  }

  get indexBytes(): number {
    return this.#index.bytes
  }

  async find(id: Buffer): Promise<StoredRequest | undefined> {
    for (const place of this.#index.find(id)) {
      const bytes = Buffer.alloc(STORED_REQUEST_BYTES)
      await this.#file.read(bytes, place * STORED_REQUEST_BYTES)
      const request = decodeStoredRequest(bytes, 0)
      if (request?.id.equals(id) === true) return request
    }
    return undefined
  }

  /** After an error nothing was added. */
  async append(requests: readonly StoredRequest[]): Promise<void> {
    const bytes = Buffer.alloc(requests.length * STORED_REQUEST_BYTES)
    for (const [index, request] of requests.entries()) encodeStoredRequest(request, bytes, index * STORED_REQUEST_BYTES)
    await this.#file.write([bytes], this.#requests * STORED_REQUEST_BYTES)
    this.#isSynced = false
    for (const request of requests) this.#add(request)
  }

  async sync(): Promise<void> {
    if (this.#isSynced) return
    await this.#file.sync()
    this.#isSynced = true
  }

  async close(): Promise<void> {
    await this.#file.close()
  }

  async #load(): Promise<void> {
    const bytes = Buffer.alloc(READ_REQUESTS * STORED_REQUEST_BYTES)
    for (;;) {
      const got = await this.#file.read(bytes, this.#requests * STORED_REQUEST_BYTES)
      let at = 0
      for (; at + STORED_REQUEST_BYTES <= got; at += STORED_REQUEST_BYTES) {
        const request = decodeStoredRequest(bytes, at)
        if (request === undefined) break
        this.#add(request)
      }
      if (at < got) await this.#file.truncate(this.#requests * STORED_REQUEST_BYTES)
      if (at < bytes.length) return
    }
  }

  #add({ id, endpointId }: StoredRequest): void {
    this.#index.add(id, this.#requests)
    this.#requests += 1
    this.counts.set(endpointId, (this.counts.get(endpointId) ?? 0) + 1)
  }
}
