/** Requests with which a check finds out what an S3 store does. Nothing else sends them. */
import { Buffer } from 'node:buffer'
import { createHash, hash } from 'node:crypto'
import { Readable } from 'node:stream'
import {
  ListObjectsV2Command,
  type ListObjectsV2CommandInput,
  PutObjectCommand,
  type PutObjectCommandInput,
  type S3Client,
} from '@aws-sdk/client-s3'
import { KiB } from '#lib/bytes.ts'
import { signPayload } from './sign-payload.ts'
import { ObjectStoreError } from './store-error.ts'

export const trialBody = Buffer.from('Written by Inlet to try this store. It can be deleted.\n')
const Body = trialBody
const otherSha256 = createHash('sha256').update('other content').digest()

/** Puts of content that differs from its checksum, by the kind of checksum. */
export const damagedPuts: readonly (readonly [name: string, make: (input: PutObjectCommandInput) => PutObjectCommand])[] = [
  [
    'SHA-256 of the signature',
    (input) => {
      const command = new PutObjectCommand({ ...input, Body })
      signPayload(command, otherSha256.toString('hex'))
      return command
    },
  ],
  ['SHA-256', (input) => new PutObjectCommand({ ...input, Body, ChecksumSHA256: otherSha256.toString('base64') })],
  ['CRC32', (input) => new PutObjectCommand({ ...input, Body, ChecksumCRC32: 'AAAAAA==' })],
  ['CRC32C', (input) => new PutObjectCommand({ ...input, Body, ChecksumCRC32C: 'AAAAAA==' })],
]

const tornBytes = 256 * KiB
const chunkBytes = 16 * KiB

/** Breaks the connection of a put once half of the object is sent. */
export async function putHalf(client: S3Client, input: PutObjectCommandInput, signal: AbortSignal | undefined): Promise<void> {
  const broken = new AbortController()
  const chunk = Buffer.alloc(chunkBytes, 'torn ')
  // Asked for more than it holds, the stream knows that what it gave before was taken.
  const halfOf = function* () {
    for (let sent = 0; sent < tornBytes / 2; sent += chunkBytes) yield chunk
    broken.abort(new Error('the put was broken off'))
  }
  const body = Readable.from(halfOf(), { objectMode: false })
  const command = new PutObjectCommand({ ...input, Body: body, ContentLength: tornBytes })
  signPayload(command, hash('sha256', Buffer.alloc(tornBytes, chunk)))
  const abortSignal = signal === undefined ? broken.signal : AbortSignal.any([signal, broken.signal])
  try {
    await client.send(command, { abortSignal })
  } catch (error) {
    if (!broken.signal.aborted) throw error
  } finally {
    body.destroy()
  }
}

/** Whether the store did not take the content. */
export function isRefusal(error: unknown): boolean {
  return error instanceof ObjectStoreError && ['damaged', 'refused', 'checksums_refused'].includes(error.reason)
}

/** Returns the `Date` of a response. */
export async function readTime(
  client: S3Client,
  input: ListObjectsV2CommandInput,
  signal: AbortSignal | undefined,
): Promise<number | undefined> {
  let date: string | undefined
  const command = new ListObjectsV2Command(input)
  command.middlewareStack.add(
    (next) => async (args) => {
      const result = await next(args)
      const { headers } = result.response as { readonly headers?: Readonly<Record<string, string>> }
      date = headers?.['date']
      return result
    },
    { step: 'deserialize', name: 'readDate' },
  )
  await client.send(command, signal === undefined ? {} : { abortSignal: signal })
  const ms = Date.parse(date ?? '')
  return Number.isNaN(ms) ? undefined : ms
}
