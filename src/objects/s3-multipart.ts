/**
 * Uploads large files in parts.
 *
 * Law: when an upload ends or fails, no request is in flight and no removable part is left in the bucket. It holds a few parts in memory,
 * never the whole file.
 */
import { createReadStream } from 'node:fs'
import {
  AbortMultipartUploadCommand,
  CreateMultipartUploadCommand,
  ListMultipartUploadsCommand,
  type ListMultipartUploadsCommandInput,
  type PutObjectCommandInput,
  type S3Client,
  UploadPartCommand,
} from '@aws-sdk/client-s3'
import { Upload } from '@aws-sdk/lib-storage'
import type { Checksums } from '#model/destination.ts'
import { s3Limits } from './limits.ts'
import { foreignResponse } from './s3-failure.ts'

export type PutInParts = {
  readonly client: S3Client
  readonly input: PutObjectCommandInput
  readonly path: string
  readonly bytes: number
  readonly signal: AbortSignal | undefined
  readonly checksums: Checksums
}

function sumsOf(checksums: Checksums) {
  return checksums === 'none' ? {} : ({ ChecksumAlgorithm: 'CRC32' } as const)
}

export async function putInParts({ client, input, path, bytes, signal, checksums }: PutInParts): Promise<void> {
  await abortEarlierUploads(client, input, signal)
  const failed = new AbortController()
  const either = signal === undefined ? failed.signal : AbortSignal.any([signal, failed.signal])
  const body = createReadStream(path, { highWaterMark: s3Limits.readBytes })
  const upload = new Upload({
    client: withSignal(client, either, (error) => failed.abort(error)),
    params: { ...input, Body: body, ContentLength: bytes, ...sumsOf(checksums) },
    partSize: s3Limits.partBytes,
    queueSize: s3Limits.partsParallel,
    leavePartsOnError: false,
  })
  try {
    await upload.done()
  } catch (error) {
    throw failed.signal.aborted ? failed.signal.reason : error
  } finally {
    body.destroy()
  }
}

/** Begins an upload with one small part, and returns its id. The caller abandons it. If the part fails, no upload is left that can be removed. */
export async function beginParts({ client, input, signal, checksums }: Omit<PutInParts, 'path' | 'bytes'>): Promise<string> {
  const options = signal === undefined ? {} : { abortSignal: signal }
  const { Bucket, Key } = input
  const sums = sumsOf(checksums)
  const { UploadId } = await client.send(new CreateMultipartUploadCommand({ ...input, ...sums }), options)
  if (UploadId === undefined) throw foreignResponse('CreateMultipartUpload')
  const part = { Bucket, Key, UploadId, PartNumber: 1, Body: Buffer.from('inlet'), ...sums }
  try {
    await client.send(new UploadPartCommand(part), options)
    return UploadId
  } catch (error) {
    await abandon(client, new AbortMultipartUploadCommand({ Bucket, Key, UploadId }))
    throw error
  }
}

/** Returns how many uploads are unfinished. More than a page of them count as a page. */
export async function countUploads(
  client: S3Client,
  input: ListMultipartUploadsCommandInput,
  signal: AbortSignal | undefined,
): Promise<number> {
  const options = signal === undefined ? {} : { abortSignal: signal }
  return (await client.send(new ListMultipartUploadsCommand(input), options)).Uploads?.length ?? 0
}

/**
 * Returns the client with every request bound to the signal. `Upload.abort` resolves before its requests have ended, and a failed part does
 * not stop the others. With the signal all of them end. Only the final AbortMultipartUpload is not bound to it.
 */
function withSignal(client: S3Client, abortSignal: AbortSignal, onFailure: (error: unknown) => void): S3Client {
  const send = async (command: Parameters<S3Client['send']>[0]) => {
    if (command instanceof AbortMultipartUploadCommand) {
      return abandon(client, command)
    }
    try {
      return await client.send(command as never, { abortSignal })
    } catch (error) {
      onFailure(error)
      throw error
    }
  }
  return Object.create(client, { send: { value: send } })
}

/** If this fails, the next attempt or the bucket's lifecycle rule removes the parts. */
function abandon(client: S3Client, command: AbortMultipartUploadCommand) {
  return client.send(command, { abortSignal: AbortSignal.timeout(s3Limits.cleanUpTimeoutMs) }).catch(() => undefined)
}

/**
 * Aborts uploads of the same file that a crashed process left. Failure is ignored: not all roles and gateways allow it, and the bucket's
 * lifecycle rule does it too. If the store is unreachable, the upload itself fails next.
 */
async function abortEarlierUploads(
  client: S3Client,
  { Bucket, Key }: PutObjectCommandInput,
  signal: AbortSignal | undefined,
): Promise<void> {
  const options = signal === undefined ? {} : { abortSignal: signal }
  try {
    const { Uploads = [] } = await client.send(new ListMultipartUploadsCommand({ Bucket, Prefix: Key }), options)
    for (const { Key: of, UploadId } of Uploads) {
      if (of === Key) await client.send(new AbortMultipartUploadCommand({ Bucket, Key, UploadId }), options)
    }
  } catch {
    signal?.throwIfAborted()
  }
}
