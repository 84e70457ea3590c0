/** Buckets of one simulated object store, which survives everything. */
import { createHash } from 'node:crypto'
import type { Files } from '#lib/files.ts'
import type { ObjectStore, ObjectStores, PutOptions } from '#objects/object-store.ts'
import { ObjectStoreError } from '#objects/store-error.ts'
import type { Draw, Life } from './kernel.ts'

/** `refused`: nothing happens. `answer lost`: it happens, and the caller learns nothing. */
export type BucketFault = 'refused' | 'answer lost'

export type BucketOptions = {
  readonly draw: Draw
  /** Mean of a request, one way, in milliseconds. */
  readonly meanMs: number
  readonly fault: () => BucketFault | undefined
  /** How many changes a list may lack, if not none. */
  readonly staleChanges?: () => number
  /** Whether a put under a condition replaces what is there. */
  readonly ignoresConditions?: boolean
}

export class Buckets {
  /** By key: one bucket is enough. */
  readonly objects = new Map<string, Buffer>()
  /** Every content that a marker ever had, by key. */
  readonly markers = new Map<string, Set<string>>()
  readonly #options: BucketOptions
  /** Each put and removal: a key, and its content then. */
  readonly #changes: (readonly [key: string, body: Buffer | undefined])[] = []

  constructor(options: BucketOptions) {
    this.#options = options
  }

  /** The store as a process sees it. `files` are those that it uploads. */
  storesFor(life: Life, files: Files): ObjectStores {
    const store = this.storeFor(life, files)
    return { open: () => store }
  }

  #set(key: string, body: Uint8Array): void {
    const copy = Buffer.from(body)
    this.objects.set(key, copy)
    if (this.#options.staleChanges !== undefined) this.#changes.push([key, copy])
  }

  #remove(key: string): void {
    if (this.objects.delete(key) && this.#options.staleChanges !== undefined) this.#changes.push([key, undefined])
  }

  /** Objects as a list has them. */
  #listed(): ReadonlyMap<string, Buffer> {
    const lacking = this.#options.staleChanges?.() ?? 0
    if (lacking === 0) return this.objects
    const listed = new Map<string, Buffer>()
    for (const [key, body] of this.#changes.slice(0, -lacking)) body === undefined ? listed.delete(key) : listed.set(key, body)
    return listed
  }

  storeFor(life: Life, files: Files): ObjectStore {
    const { objects } = this
    const listed = () => this.#listed()
    const { ignoresConditions = false } = this.#options
    const request = async <T>(what: string, act: () => T, signal?: AbortSignal): Promise<T> => {
      signal?.throwIfAborted()
      const fault = this.#options.fault()
      const result = await life.call(what, this.#options, () => (fault === 'refused' ? undefined : { value: act() }))
      signal?.throwIfAborted()
      if (result === undefined || fault === 'answer lost')
        throw new ObjectStoreError('unavailable', 'put', 'ServiceUnavailable', `simulated: ${fault}`)
      return result.value
    }
    const put = (key: string, body: Uint8Array): void => {
      this.#set(key, body)
      if (!isMarker(key)) return
      const known = this.markers.get(key) ?? new Set()
      this.markers.set(key, known.add(digest(body)))
    }
    return {
      async putFile(key, path, { sha256, signal }: PutOptions) {
        const body = await files.read(path)
        if (body === undefined) throw Object.assign(new Error(`ENOENT: ${path}`), { code: 'ENOENT' })
        const putIntact = () => {
          if (sha256 !== undefined && digest(body) !== sha256)
            throw new ObjectStoreError('damaged', 'put', 'BadDigest', 'simulated: it has another checksum')
          put(key, body)
        }
        await request(`put ${key}`, putIntact, signal)
      },
      put: (key, body, { signal }) => request(`put ${key}`, () => put(key, body), signal),
      putIfAbsent: (key, body, { signal }) =>
        request(
          `put ${key} if absent`,
          () => {
            if (objects.has(key) && !ignoresConditions) return false
            put(key, body)
            return true
          },
          signal,
        ),
      get: (key, signal) => request(`get ${key}`, () => objects.get(key), signal),
      head: (key, signal) =>
        request(
          `head ${key}`,
          () => {
            const found = objects.get(key)
            return found && { bytes: found.length, sha256: digest(found) }
          },
          signal,
        ),
      async getFile(key, path, signal) {
        const found = await request(`get ${key}`, () => objects.get(key), signal)
        if (found === undefined) return false
        await files.remove(path)
        const file = await files.open(path, 'create')
        await file.write([found], 0)
        await file.close()
        return true
      },
      digest: (key, { signal } = {}) =>
        request(
          `get ${key}`,
          () => {
            const found = objects.get(key)
            return found && { bytes: found.length, sha256: digest(found) }
          },
          signal,
        ),
      presign: () => Promise.reject(new Error('nobody downloads')),
      remove: (key, signal) => request(`remove ${key}`, () => this.#remove(key), signal),
      async *list(prefix, signal) {
        const found = await request(
          `list ${prefix}`,
          () => [...listed()].filter(([key]) => key.startsWith(prefix)).map(([key, body]) => ({ key, bytes: body.length })),
          signal,
        )
        yield* found.toSorted((one, other) => Buffer.compare(Buffer.from(one.key), Buffer.from(other.key)))
      },
    }
  }
}

export function isMarker(key: string): boolean {
  return key.includes('/commits/')
}

export function digest(body: Uint8Array): string {
  return createHash('sha256').update(body).digest('hex')
}
