import { createHash } from 'node:crypto'
import { constants, existsSync } from 'node:fs'
import { copyFile, type FileHandle, mkdir, open, readdir, readFile, rename, rm, stat } from 'node:fs/promises'
import { dirname, join, sep } from 'node:path'
import type { Readable } from 'node:stream'
import { assert } from '#lib/assert.ts'
import { digestFile } from '#lib/digest-file.ts'
import { systemFiles } from '#lib/files.ts'
import { BucketAccess } from './bucket-access.ts'
import { BucketFolders, checkBucket, type OwnedBucket } from './bucket-folders.ts'
import type { DigestOptions, ObjectEntry, ObjectFacts, ObjectStore, ObjectStores, PutOptions } from './object-store.ts'
import type { ObjectName, SignedUrls } from './signed-urls.ts'

export type DirectoryStoresOptions = {
  readonly root: string
  /** Id of the group that may read the buckets. Null: none. */
  readonly groupId?: number | null
  /** Signs download URLs. Without it `presign` fails. */
  readonly signedUrls?: SignedUrls
}

/**
 * Buckets as local directories: `<root>/<folder of the bucket>/<key>`. An empty part of a key (`a//b`) is the directory `%`, and `%` in a part is `%25`.
 *
 * Owns: atomic, durable puts. Does not own: which folder a bucket has, who may read it, and metadata, which plain files cannot store.
 * Law: before a put resolves, its file is written under `<root>/.incoming`, synced and renamed, and the directories that contain it are synced.
 */
export class DirectoryStores implements ObjectStores {
  readonly #context: Context

  constructor({ root, groupId = null, signedUrls }: DirectoryStoresOptions) {
    this.#context = { root, signedUrls, folders: new BucketFolders(root), access: new BucketAccess(root, groupId) }
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
    const file = await open(pathOf(this.#context.root, checkedPart(bucket), key)).catch(undefinedIfMissing)
    if (file === undefined) return undefined
    try {
      const found = await file.stat()
      if (found.isFile()) return { bytes: found.size, stream: file.createReadStream() }
    } catch (error) {
      await file.close()
      throw error
    }
    await file.close()
    return undefined
  }
}

type Context = {
  readonly root: string
  readonly signedUrls: SignedUrls | undefined
  readonly folders: BucketFolders
  readonly access: BucketAccess
}

class DirectoryStore implements ObjectStore {
  readonly #context: Context
  readonly #bucket: OwnedBucket

  constructor(context: Context, bucket: OwnedBucket) {
    this.#context = context
    this.#bucket = bucket
  }

  async putFile(key: string, path: string, options: PutOptions): Promise<void> {
    await this.#write(key, options, async (incoming) => {
      await copyFile(path, incoming, constants.COPYFILE_FICLONE)
      return open(incoming, 'r+')
    })
  }

  async put(key: string, body: Uint8Array, options: PutOptions): Promise<void> {
    await this.#write(key, options, async (incoming) => {
      const file = await open(incoming, 'w', 0o600)
      try {
        await file.writeFile(body)
      } catch (error) {
        await file.close()
        throw error
      }
      return file
    })
  }

  async get(key: string, signal?: AbortSignal): Promise<Uint8Array | undefined> {
    signal?.throwIfAborted()
    return readFile(await this.#path(key)).catch(undefinedIfMissing)
  }

  async head(key: string, signal?: AbortSignal): Promise<ObjectFacts | undefined> {
    signal?.throwIfAborted()
    const found = await stat(await this.#path(key)).catch(undefinedIfMissing)
    return found?.isFile() === true ? { bytes: found.size } : undefined
  }

  async getFile(key: string, path: string, signal?: AbortSignal, bytesMax = Number.POSITIVE_INFINITY): Promise<boolean> {
    const found = await this.head(key, signal)
    if (found !== undefined && found.bytes > bytesMax) throw new Error(`the object ${key} is larger than ${bytesMax} bytes`)
    return copyFile(await this.#path(key), path, constants.COPYFILE_FICLONE).then(
      () => true,
      (error) => {
        undefinedIfMissing(error)
        return false
      },
    )
  }

  async digest(key: string, { signal, onRead }: DigestOptions = {}): ReturnType<ObjectStore['digest']> {
    return digestFile(await this.#path(key), signal, onRead).catch(undefinedIfMissing)
  }

  async presign(key: string, seconds: number): Promise<string> {
    const { signedUrls, folders } = this.#context
    assert(signedUrls !== undefined, 'this process cannot sign URLs')
    return signedUrls.sign({ bucket: await folders.folderOf(this.#bucket), key }, seconds)
  }

  async remove(key: string, signal?: AbortSignal): Promise<void> {
    signal?.throwIfAborted()
    await rm(await this.#path(key), { force: true })
  }

  async *list(prefix: string, signal?: AbortSignal): AsyncIterable<ObjectEntry> {
    const root = join(this.#context.root, await this.#context.folders.folderOf(this.#bucket))
    // The last part of the prefix may be the beginning of a name.
    const directory = join(root, ...prefix.split('/').slice(0, -1).map(toFileName))
    const entries = (await readdir(directory, { recursive: true, withFileTypes: true }).catch(undefinedIfMissing)) ?? []
    const keys = entries
      .filter((entry) => entry.isFile())
      .map((entry) =>
        join(entry.parentPath, entry.name)
          .slice(root.length + 1)
          .split(sep)
          .map(fromFileName)
          .join('/'),
      )
      .filter((key) => key.startsWith(prefix))
      .sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)))
    for (const key of keys) {
      signal?.throwIfAborted()
      const found = await stat(await this.#path(key)).catch(undefinedIfMissing)
      if (found !== undefined) yield { key, bytes: found.size }
    }
  }

  async #path(key: string): Promise<string> {
    return pathOf(this.#context.root, await this.#context.folders.folderOf(this.#bucket), key)
  }

  async #write(key: string, { signal }: PutOptions, write: (incoming: string) => Promise<FileHandle>): Promise<void> {
    signal?.throwIfAborted()
    const { root, access } = this.#context
    const path = await this.#path(key)
    const incomingDirectory = join(root, '.incoming')
    if (!existsSync(incomingDirectory)) await mkdir(incomingDirectory, { recursive: true, mode: 0o700 })
    // Named after the object, so that a retry overwrites what a crash left.
    const incoming = join(incomingDirectory, createHash('sha256').update(path).digest('hex'))
    {
      await using file = await write(incoming)
      await access.shareFile(file)
      await file.sync()
    }
    signal?.throwIfAborted()
    await systemFiles.makeDirectory(dirname(path))
    await access.shareDirectory(dirname(path))
    await rename(incoming, path)
    await systemFiles.syncDirectory(dirname(path))
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
