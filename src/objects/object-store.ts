/** Object metadata and headers of one put. */
export type PutOptions = {
  readonly contentType: string
  /** Kept with the object as user metadata; keys are lowercase letters, digits and hyphens. */
  readonly metadata: Readonly<Record<string, string>>
  /** Of the bytes, in hex, where the caller knows it: then a file need not be read for it. */
  readonly sha256?: string
  readonly signal?: AbortSignal
}

export type ObjectEntry = { readonly key: string; readonly bytes: number }

/**
 * One bucket. Keys are whole keys, prefix included.
 *
 * Law: when `put` resolves, the whole object is durable and readable; before that nothing of it is visible. A put of a key that
 * is there replaces it.
 */
export interface ObjectStore {
  /** Puts a file of the local file system, streamed. */
  putFile(key: string, path: string, options: PutOptions): Promise<void>
  put(key: string, body: Uint8Array, options: PutOptions): Promise<void>
  /** The whole object, or undefined where there is none. For small objects: a large one is refused. */
  get(key: string, signal?: AbortSignal): Promise<Uint8Array | undefined>
  /** How many bytes it has, or undefined where there is no such object. */
  size(key: string, signal?: AbortSignal): Promise<number | undefined>
  /** Streams the object into a new file of the local file system. False where there is no such object. */
  getFile(key: string, path: string, signal?: AbortSignal): Promise<boolean>
  /** An address that anyone can download the object from for so long. Says nothing of whether it is there. */
  presign(key: string, seconds: number): Promise<string>
  remove(key: string, signal?: AbortSignal): Promise<void>
  /** Keys that start with the prefix, in order of their UTF-8 bytes. */
  list(prefix: string, signal?: AbortSignal): AsyncIterable<ObjectEntry>
}

/** What reaching a bucket takes. The model's DestinationTarget fits. */
export type BucketTarget = {
  readonly id: string
  readonly bucket: string
  /** What the role is expected to be allowed, to be named where it is not; keys are whole keys all the same. */
  readonly prefix?: string
  readonly region: string
  readonly role_arn: string
  readonly external_id: string
  readonly kms_key_arn: string | null
  readonly path_style: boolean
  /** What the owner of the role sees in its logs of whom it let in: `sessionName`. */
  readonly session?: string
}

export type OpenOptions = {
  /** With credentials that were got for this store alone: what the role says now counts. */
  readonly fresh?: boolean
}

export interface ObjectStores {
  open(target: BucketTarget, options?: OpenOptions): ObjectStore
}
