/** A local copy of a part of a bucket on S3, so that tests read objects as files. Credentials come from the environment, as for any AWS tool. */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { GetObjectCommand, paginateListObjectsV2, S3Client } from '@aws-sdk/client-s3'

export class ObjectCopy implements AsyncDisposable {
  readonly #client: S3Client
  readonly #directory: string
  readonly #copied = new Set<string>()

  private constructor(endpoint: string, region: string, directory: string) {
    this.#client = new S3Client({ endpoint, region, forcePathStyle: true })
    this.#directory = directory
  }

  static async create(endpoint: string, region: string): Promise<ObjectCopy> {
    return new ObjectCopy(endpoint, region, await mkdtemp(join(tmpdir(), 'inlet-objects-')))
  }

  /** Fetches the objects under a prefix that are not here yet. Returns the directory that stands for the bucket. */
  async update(bucket: string, prefix: string): Promise<string> {
    for await (const page of paginateListObjectsV2({ client: this.#client }, { Bucket: bucket, Prefix: `${prefix}/` })) {
      for (const { Key: key = '' } of page.Contents ?? []) await this.#fetch(bucket, key)
    }
    return join(this.#directory, bucket)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#client.destroy()
    await rm(this.#directory, { recursive: true, force: true })
  }

  async #fetch(bucket: string, key: string): Promise<void> {
    const path = join(this.#directory, bucket, key)
    if (this.#copied.has(path)) return
    const { Body: body } = await this.#client.send(new GetObjectCommand({ Bucket: bucket, Key: key }))
    if (body === undefined) throw new Error(`${bucket}/${key} has no body`)
    await mkdir(dirname(path), { recursive: true })
    await writeFile(path, await body.transformToByteArray())
    this.#copied.add(path)
  }
}
