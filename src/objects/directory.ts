import { createHash } from 'node:crypto'
import { dirname, join, sep } from 'node:path'
import { Readable } from 'node:stream'
import { assert } from '#lib/assert.ts'
import { KiB } from '#lib/bytes.ts'
import { digestFile } from '#lib/digest-file.ts'
import { createFile, type Files, type OpenFile } from '#lib/files.ts'
import { BucketAccess } from './bucket-access.ts'
import { BucketFolders, checkBucket, type OwnedBucket } from './bucket-folders.ts'
import { FolderCase, folderMark, incomingFolder } from './folder-case.ts'
import type { DigestOptions, ObjectEntry, ObjectFacts, ObjectStore, ObjectStores, PutOptions } from './object-store.ts'
import type { ObjectName, SignedUrls } from './signed-urls.ts'

const READ_BYTES = 64 * KiB

export type DirectoryStoresOptions = {
  readonly root: string
  readonly files: Files
  /** Id of the group that may read the buckets. Null: none. */
  readonly groupId?: number | null
  /** Signs download URLs. Without it `presign` fails. */
  readonly signedUrls?: SignedUrls
  /** Called before each use of the root. Rejects if it must not be used. */
  readonly verifyRoot?: () => Promise<void>
}

/**
 * Buckets as local directories: `<root>/<folder of the bucket>/<key>`. An empty part of a key (`a//b`) is the directory `%`, and `%` in a part is `%25`.
 *
 * Owns: atomic, durable puts. Does not own: which folder a bucket has, who may read it, and metadata, which plain files cannot store.
 * Law: before a put resolves, its file is written under `<root>/.incoming`, synced and renamed, and the directories that contain it are synced.
 */
export class DirectoryStores implements ObjectStores {
  readonly #context: Context

  constructor({ root, groupId = null, signedUrls, files, verifyRoot = async () => undefined }: DirectoryStoresOptions) {
    const folders = new BucketFolders(root, files)
    this.#context = {
      root,
      files,
      signedUrls,
      verifyRoot,
      folders,
      access: new BucketAccess(root, groupId, files),
      folderCase: new FolderCase(root, files),
    }
  }

  /** Lets the group reach the buckets. Throws UserError if this process may not. */
  prepare(): Promise<void> {
    return this.#context.access.prepare()
  }

  /** Makes the account with the external id that `findOwner` returns the owner of each folder that has none. */
  adopt(findOwner: (bucket: string) => Promise<string | undefined>): Promise<void> {
    return this.#context.folders.adopt(findOwner)
  }

  open(bucket: OwnedBucket): ObjectStore {
    checkBucket(bucket)
    return new DirectoryStore(this.#context, bucket)
  }

  /**
   * Opens an object for the server of signed URLs, whose bucket is the name of a folder. Returns undefined if it is missing. The caller must
   * read or destroy the stream.
   */
  async read({ bucket, key }: ObjectName): Promise<{ readonly bytes: number; readonly stream: Readable } | undefined> {
    const { root, files, folderCase } = this.#context
    const path = await folderCase.pathForReading(pathOf(root, checkedPart(bucket), key), key)
    if ((await objectBytes(files, path)) === undefined) return undefined
    const file = await files.open(path, 'read').catch(undefinedIfMissing)
    if (file === undefined) return undefined
    const stream = Readable.from(chunksOf(file), { objectMode: false }).once('close', () => void file.close())
    return { bytes: await file.bytes(), stream }
  }
}

type Context = {
  readonly root: string
  readonly files: Files
  readonly signedUrls: SignedUrls | undefined
  readonly verifyRoot: () => Promise<void>
  readonly folders: BucketFolders
  readonly access: BucketAccess
  readonly folderCase: FolderCase
}

type Placing = {
  /** Ends the name of the file that is written. */
  readonly part: string
  /** Gives the written file its place. */
  readonly place: (incoming: string, path: string) => Promise<void>
}

class DirectoryStore implements ObjectStore {
  readonly #context: Context
  readonly #bucket: OwnedBucket

  constructor(context: Context, bucket: OwnedBucket) {
    this.#context = context
    this.#bucket = bucket
  }

  async putFile(key: string, path: string, options: PutOptions): Promise<void> {
    await this.#write(key, options, (incoming) => this.#context.files.copy(path, incoming))
  }

  async put(key: string, body: Uint8Array, options: PutOptions): Promise<void> {
    await this.#write(key, options, (incoming) => this.#create(incoming, body))
  }

  async putIfAbsent(key: string, body: Uint8Array, options: PutOptions): Promise<boolean> {
    if ((await this.head(key, options.signal)) !== undefined) return false
    const { files } = this.#context
    // Two writers of one key must not share a file.
    const part = `-${createHash('sha256').update(body).digest('hex').slice(0, 16)}`
    let isThere = false
    await this.#write(key, options, (incoming) => this.#create(incoming, body), {
      part,
      place: async (incoming, path) => {
        isThere = !(await linkIfAbsent(files, incoming, path))
        await files.remove(incoming)
      },
    })
    return !isThere
  }

  async get(key: string, signal?: AbortSignal): Promise<Uint8Array | undefined> {
    signal?.throwIfAborted()
    return this.#context.files.read(await this.#existing(key)).catch(undefinedIfMissing)
  }

  async head(key: string, signal?: AbortSignal): Promise<ObjectFacts | undefined> {
    signal?.throwIfAborted()
    const bytes = await objectBytes(this.#context.files, await this.#existing(key))
    return bytes === undefined ? undefined : { bytes }
  }

  async getFile(key: string, path: string, signal?: AbortSignal, bytesMax = Number.POSITIVE_INFINITY): Promise<boolean> {
    const found = await this.head(key, signal)
    if (found !== undefined && found.bytes > bytesMax) throw new Error(`the object ${key} is larger than ${bytesMax} bytes`)
    return this.#context.files.copy(await this.#existing(key), path).then(
      () => true,
      (error) => {
        undefinedIfMissing(error)
        return false
      },
    )
  }

  async digest(key: string, { signal, onRead }: DigestOptions = {}): ReturnType<ObjectStore['digest']> {
    return digestFile(this.#context.files, await this.#existing(key), signal, onRead).catch(undefinedIfMissing)
  }

  async presign(key: string, seconds: number): Promise<string> {
    const { signedUrls, folders } = this.#context
    assert(signedUrls !== undefined, 'this process cannot sign URLs')
    return signedUrls.sign({ bucket: await folders.folderOf(this.#bucket), key }, seconds)
  }

  async remove(key: string, signal?: AbortSignal): Promise<void> {
    signal?.throwIfAborted()
    await this.#context.files.remove(await this.#existing(key))
  }

  async *list(prefix: string, signal?: AbortSignal): AsyncIterable<ObjectEntry> {
    await this.#context.verifyRoot()
    const root = join(this.#context.root, await this.#context.folders.folderOf(this.#bucket))
    // The last part of the prefix may be the beginning of a name.
    const directory = join(root, ...prefix.split('/').slice(0, -1).map(toFileName))
    const keys = (await listFiles(this.#context.files, directory))
      .map((path) =>
        path
          .slice(root.length + 1)
          .replace(folderMark, '')
          .split(sep)
          .map(fromFileName)
          .join('/'),
      )
      .filter((key) => key.startsWith(prefix))
      .sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)))
    for (const key of keys) {
      signal?.throwIfAborted()
      const found = await this.head(key)
      if (found !== undefined) yield { key, bytes: found.bytes }
    }
  }

  async #path(key: string): Promise<string> {
    await this.#context.verifyRoot()
    return pathOf(this.#context.root, await this.#context.folders.folderOf(this.#bucket), key)
  }

  /** Returns the path of an object that may be there. */
  async #existing(key: string): Promise<string> {
    return this.#context.folderCase.pathForReading(await this.#path(key), key)
  }

  async #create(incoming: string, body: Uint8Array): Promise<void> {
    await this.#context.files.remove(incoming)
    await createFile(this.#context.files, incoming, body)
  }

  async #write(
    key: string,
    { signal }: PutOptions,
    write: (incoming: string) => Promise<void>,
    { part = '', place = (incoming, path) => this.#context.files.rename(incoming, path) }: Partial<Placing> = {},
  ): Promise<void> {
    signal?.throwIfAborted()
    const { root, files, access, folderCase } = this.#context
    const incomingDirectory = join(root, incomingFolder)
    const objectPath = await this.#path(key)
    await files.makeDirectory(incomingDirectory)
    const path = await folderCase.pathForWriting(objectPath, key)
    // Named after the object, so that a retry overwrites what a crash left.
    const incoming = join(incomingDirectory, `${createHash('sha256').update(path).digest('hex')}${part}`)
    await write(incoming)
    await access.shareFile(incoming)
    const file = await files.open(incoming, 'update')
    await file.sync().finally(() => file.close())
    signal?.throwIfAborted()
    await files.makeDirectory(dirname(path))
    await access.shareDirectory(dirname(path))
    await place(incoming, path)
    await files.syncDirectory(dirname(path))
  }
}

/** Some file systems have no links. */
const withoutLinks = new Set(['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EMLINK'])

/** Returns false if the path is there. A file system without links replaces it. */
async function linkIfAbsent(files: Files, from: string, path: string): Promise<boolean> {
  try {
    await files.link(from, path)
    return true
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException
    if (code === 'EEXIST') return false
    if (!withoutLinks.has(code)) throw error
    await files.rename(from, path)
    return true
  }
}

/** A directory is no object: it holds those whose keys continue. */
async function objectBytes(files: Files, path: string): Promise<number | undefined> {
  const bytes = await files.bytes(path).catch(undefinedIfMissing)
  if (bytes === undefined) return undefined
  const isDirectory = await files.list(path).then(
    () => true,
    () => false,
  )
  return isDirectory ? undefined : bytes
}

async function listFiles(files: Files, directory: string): Promise<readonly string[]> {
  const entries = (await files.list(directory).catch(undefinedIfMissing)) ?? []
  const found = await Promise.all(
    entries.map(({ name, kind }) => {
      const path = join(directory, name)
      return kind === 'directory' ? listFiles(files, path) : kind === 'file' ? [path] : []
    }),
  )
  return found.flat()
}

async function* chunksOf(file: OpenFile): AsyncGenerator<Uint8Array> {
  for (let at = 0; ; ) {
    const chunk = Buffer.allocUnsafe(READ_BYTES)
    const got = await file.read(chunk, at)
    if (got === 0) return
    at += got
    yield chunk.subarray(0, got)
  }
}

function pathOf(root: string, bucket: string, key: string): string {
  return join(root, bucket, ...key.split('/').map(toFileName))
}

function toFileName(part: string): string {
  return part === '' ? '%' : checkedPart(part).replaceAll('%', '%25')
}

function fromFileName(name: string): string {
  return name === '%' ? '' : name.replaceAll('%25', '%')
}

function checkedPart(part: string): string {
  if (part === '' || part === '.' || part === '..' || part.includes('\0') || part.includes(sep)) {
    throw new Error(`invalid part of an object key: ${JSON.stringify(part)}`)
  }
  return part
}

function undefinedIfMissing(error: NodeJS.ErrnoException): undefined {
  if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return undefined
  throw error
}
