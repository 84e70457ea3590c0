/**
 * Uploads large files in parts.
 *
 * Law: when an upload ends or fails, no request is in flight and no removable part is left in the bucket. It holds a few parts in memory,
 * never the whole file.
 */
import { createReadStream } from 'node:fs'
import {
  AbortMultipartUploadCommand,
  ListMultipartUploadsCommand,
  type PutObjectCommandInput,
  type S3Client,
} from '@aws-sdk/client-s3'
import { Upload } from '@aws-sdk/lib-storage'
import { s3Limits } from './limits.ts'

export type PutInParts = {
  readonly client: S3Client
  readonly input: PutObjectCommandInput
  readonly path: string
  readonly bytes: number
  readonly signal: AbortSignal | undefined
}

export async function putInParts({ client, input, path, bytes, signal }: PutInParts): Promise<void> {
  await abortEarlierUploads(client, input, signal)
  const failed = new AbortController()
  const either = signal === undefined ? failed.signal : AbortSignal.any([signal, failed.signal])
  const body = createReadStream(path, { highWaterMark: s3Limits.readBytes })
  const upload = new Upload({
    client: withSignal(client, either, (error) => failed.abort(error)),
    params: { ...input, Body: body, ContentLength: bytes, ChecksumAlgorithm: 'CRC32' },
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

/**
 * Returns the client with every request bound to the signal. `Upload.abort` resolves before its requests have ended, and a failed part does
 * not stop the others. With the signal all of them end. Only the final AbortMultipartUpload is not bound to it.
 */
function withSignal(client: S3Client, abortSignal: AbortSignal, onFailure: (error: unknown) => void): S3Client {
  const send = async (command: Parameters<S3Client['send']>[0]) => {
    if (command instanceof AbortMultipartUploadCommand) {
      // If this fails, the next attempt or the bucket's lifecycle rule removes the parts.
      return client.send(command, { abortSignal: AbortSignal.timeout(s3Limits.cleanUpTimeoutMs) }).catch(() => undefined)
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
