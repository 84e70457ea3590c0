import type { Checksums, Encryption } from '#model/destination.ts'

/** Metadata and headers of one put. */
export type PutOptions = {
  readonly contentType: string
  /** User metadata of the object. Names consist of lowercase letters, digits and hyphens. */
  readonly metadata: Readonly<Record<string, string>>
  /** SHA-256 of the content in hex, if known. Otherwise the file is read once more to compute it. */
  readonly sha256?: string
  /** Requests to send before a failure is thrown. A few, unless given. */
  readonly attempts?: number
  readonly signal?: AbortSignal
}

/** Facts of an object that a store gives without its content. */
export type ObjectFacts = {
  readonly bytes: number
  /** SHA-256 of the content in hex: as the store verified it, or else as whoever put the object named it in its metadata. Not every store has it. */
  readonly sha256?: string | undefined
}

export type DigestOptions = {
  readonly signal?: AbortSignal
  /** Called with the size of each part that was read. The next part is read once it has resolved. */
  readonly onRead?: (bytes: number) => Promise<void> | void
}

/** Names of checksums. */
export type ChecksumTrial = { readonly refused: readonly string[]; readonly stored: readonly string[] }

export type ObjectEntry = { readonly key: string; readonly bytes: number }

/**
 * One bucket. Keys include the prefix.
 *
 * Law: when `put` resolves, the whole object is durable and readable; before that no part of it is visible. A put replaces an existing
 * object.
 */
export interface ObjectStore {
  /** Uploads a local file, streamed. */
  putFile(key: string, path: string, options: PutOptions): Promise<void>
  put(key: string, body: Uint8Array, options: PutOptions): Promise<void>
  /**
   * Sends one put with a condition. Returns false, and changes nothing, if the object is there. A store that does not know conditions replaces
   * the object all the same, or fails with `condition_refused`.
   */
  putIfAbsent(key: string, body: Uint8Array, options: PutOptions): Promise<boolean>
  /** Returns the whole object, or undefined if it is missing. Throws if it is large. */
  get(key: string, signal?: AbortSignal): Promise<Uint8Array | undefined>
  /** Returns undefined if the object is missing. */
  head(key: string, signal?: AbortSignal): Promise<ObjectFacts | undefined>
  /** Downloads the object to a new local file. Returns false if the object is missing. Throws if it is larger than `bytesMax`. */
  getFile(key: string, path: string, signal?: AbortSignal, bytesMax?: number): Promise<boolean>
  /** Reads the whole object without keeping it. Returns its size and its SHA-256 in hexadecimal, or undefined if it is missing. */
  digest(key: string, options?: DigestOptions): Promise<{ readonly bytes: number; readonly sha256: string } | undefined>
  /** Returns a URL from which anyone can download the object for that time. The object may be missing. */
  presign(key: string, seconds: number): Promise<string>
  remove(key: string, signal?: AbortSignal): Promise<void>
  /** Uploads a small part of the object and abandons the upload. Stores that never upload in parts do not have it. */
  tryParts?(key: string, options: PutOptions): Promise<void>
  /** Begins a put of the object, and breaks off its connection half-way. */
  tryTorn?(key: string, options: PutOptions): Promise<void>
  /** Returns how many uploads in parts are unfinished of objects whose keys start with the prefix. */
  countUploads?(prefix: string, signal?: AbortSignal): Promise<number>
  /** Puts a small object. Returns whether the store keeps it as a version once it is removed. */
  tryVersions?(key: string, options: PutOptions): Promise<boolean>
  /** Puts small objects that differ from their checksum, with each kind of checksum. Returns which ones the store refused. */
  tryChecksums?(newKey: () => string, options: PutOptions): Promise<ChecksumTrial>
  /** Returns the time of the store in epoch ms, in whole seconds. Undefined if it does not tell. `prefix`: where it may list. */
  readTime?(prefix: string, signal?: AbortSignal): Promise<number | undefined>
  /** Yields the objects whose keys start with the prefix, in the order of their UTF-8 bytes. */
  list(prefix: string, signal?: AbortSignal): AsyncIterable<ObjectEntry>
}

/** All that is needed to reach a bucket. DestinationTarget of the model fits. */
export type BucketTarget = {
  readonly id: string
  readonly bucket: string
  /** The part of the bucket that the role may use, for error messages. Keys include it anyway. */
  readonly prefix?: string
  readonly region: string
  readonly role_arn: string | null
  readonly external_id: string
  readonly encryption: Encryption
  readonly kms_key_arn: string | null
  readonly checksums: Checksums
  /** Buckets that the account may use if no role decides. */
  readonly allowed_buckets: readonly string[]
  readonly path_style: boolean
  /** Session name that the owner of the role finds in its logs: see `sessionName`. */
  readonly session?: string
}

export type OpenOptions = {
  /** Assumes the role anew, so that its current policies apply. */
  readonly fresh?: boolean
}

export interface ObjectStores {
  open(target: BucketTarget, options?: OpenOptions): ObjectStore
}
