/**
 * Large files, in parts.
 *
 * Law: when it ends, well or not, no part of it is left in the bucket that we can remove, and nothing still writes. It holds a few parts in
 * memory, never the file.
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
  await abortLeftOver(client, input, signal)
  const failed = new AbortController()
  const either = signal === undefined ? failed.signal : AbortSignal.any([signal, failed.signal])
  const body = createReadStream(path, { highWaterMark: s3Limits.readBytes })
  const upload = new Upload({
    client: sendingUnder(client, either, (error) => failed.abort(error)),
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
 * The client, with each request under the signal. `Upload` has an abort of its own that answers before its requests have ended, and goes on
 * with the other parts when one has failed: this way everything ends, and then it aborts the upload, which alone is not under the signal.
 */
function sendingUnder(client: S3Client, abortSignal: AbortSignal, onFailure: (error: unknown) => void): S3Client {
  const send = async (command: Parameters<S3Client['send']>[0]) => {
    if (command instanceof AbortMultipartUploadCommand) {
      // One that can't be removed is removed by the next attempt, or by the bucket's lifecycle rule.
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
 * Of an earlier attempt of the same file, by a process that died. It need not succeed: not all roles may, not all gateways can, the bucket's
 * lifecycle rule does it too, and a store that is away says so again at once.
 */
async function abortLeftOver(
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
