/**
 * The folder of each bucket of the directory store.
 *
 * Owns: `<root>/.owners/<bucket>`, which has the external id of the account that owns the folder of that name, after its checksum: a changed id
 * would move the bucket of the account to another, empty folder.
 * Law: a folder belongs to one account. The first to use a name gets its folder, and keeps it. The bucket of another account with that name is
 * `<bucket>@<external id>`, so neither account notices the other one.
 */
import { join } from 'node:path'
import { crc32 } from 'node:zlib'
import type { Files } from '#lib/files.ts'
import { readOrCreate } from '#lib/read-or-create.ts'
import type { BucketTarget } from './object-store.ts'

export type OwnedBucket = Pick<BucketTarget, 'bucket' | 'external_id'>

/** No file system takes two of these names for one: they have no capitals, no marks, and no dot at the end. */
const bucketPattern = /^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$/
const externalIdPattern = /^[0-9A-Za-z-]+$/

/** Beyond this many they are forgotten, and read once more when they are needed. */
const foldersMax = 10_000

export class BucketFolders {
  readonly #root: string
  readonly #files: Files
  readonly #folders = new Map<string, Promise<string>>()

  constructor(root: string, files: Files) {
    this.#root = root
    this.#files = files
  }

  /** Returns the name of the folder, and makes the account its owner if it is free. */
  folderOf(bucket: OwnedBucket): Promise<string> {
    const id = `${bucket.bucket}@${bucket.external_id}`
    const known = this.#folders.get(id)
    if (known !== undefined) return known
    const found = this.#find(bucket, id)
    if (this.#folders.size > foldersMax) this.#folders.clear()
    this.#folders.set(id, found)
    found.catch(() => this.#folders.delete(id))
    return found
  }

  /** Makes the account that `findOwner` returns the owner of each folder that has none. */
  async adopt(findOwner: (bucket: string) => Promise<string | undefined>): Promise<void> {
    const owned = new Set(await this.#namesIn(this.#owners))
    for (const name of await this.#namesIn(this.#root)) {
      if (owned.has(name) || !bucketPattern.test(name)) continue
      const owner = await findOwner(name)
      if (owner !== undefined) await readOrCreate(this.#files, join(this.#owners, name), () => withChecksum(owner))
    }
  }

  async #namesIn(directory: string): Promise<readonly string[]> {
    return (await this.#files.list(directory)).map(({ name }) => name)
  }

  get #owners(): string {
    return join(this.#root, '.owners')
  }

  async #find({ bucket, external_id }: OwnedBucket, own: string): Promise<string> {
    const owner = ownerIn(await readOrCreate(this.#files, join(this.#owners, bucket), () => withChecksum(external_id)))
    if (owner === undefined)
      throw new Error(
        `buckets/.owners/${bucket} is damaged, so it is not known which account owns the folder ${bucket}: write the external id of the account into it`,
      )
    return owner === external_id ? bucket : own
  }
}

function withChecksum(externalId: string): string {
  return `${crc32(externalId).toString(16).padStart(8, '0')}: ${externalId}`
}

/** Returns undefined if the text is damaged. Files of earlier versions, and those that a person wrote, have the id alone. */
function ownerIn(text: string): string | undefined {
  const [, checksum, id] = /^(?:([0-9a-f]{8}): )?([0-9A-Za-z-]+)$/.exec(text) ?? []
  if (id === undefined || (checksum === undefined && /^[0-9a-f]{1,8}$/.test(id))) return undefined
  return checksum === undefined || text === withChecksum(id) ? id : undefined
}

/** Throws if a name could mean a folder other than that of a bucket. */
export function checkBucket({ bucket, external_id }: OwnedBucket): void {
  if (!bucketPattern.test(bucket)) throw new Error(`invalid name of a bucket: ${JSON.stringify(bucket)}`)
  if (!externalIdPattern.test(external_id)) throw new Error(`invalid external id: ${JSON.stringify(external_id)}`)
}
