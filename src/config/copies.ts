/** Options of the copy store, which has a second copy of what a node acknowledges. */
import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import {
  choice,
  duration,
  integer,
  matching,
  OptionError,
  type OptionType,
  option,
  optional,
  secret,
  serviceUrl,
} from '#lib/option-types.ts'

/** `prefix` has no slash at its ends, and may be empty. */
export type CopyUrl =
  | { readonly kind: 's3'; readonly bucket: string; readonly prefix: string }
  | { readonly kind: 'directory'; readonly path: string }

const copyUrl: OptionType<CopyUrl> = (value) => {
  const url = URL.parse(value)
  const rest = `${url?.username}${url?.password}${url?.search}${url?.hash}${url?.port}`
  if (url?.protocol === 's3:' && url.hostname !== '' && rest === '')
    return { kind: 's3', bucket: url.hostname, prefix: decodeURIComponent(url.pathname).replace(/^\/+|\/+$/g, '') }
  // As a URL, `file:copies` is `/copies`, and not what its writer means.
  if (url?.protocol === 'file:' && value.toLowerCase().startsWith('file:///') && rest === '')
    return { kind: 'directory', path: resolve(fileURLToPath(url)) }
  throw new OptionError('must be s3://bucket/prefix or file:///directory')
}

export const copyOptions = {
  copyUrl: option(
    'INLET_COPY_URL',
    '',
    optional(copyUrl),
    'where a node keeps a second copy of what it acknowledged and did not deliver yet, for endpoints with `copies: 2`: `s3://bucket/prefix`, or `file:///directory` on another disk or a network mount; empty: nowhere, and such endpoints are refused ([how safe is an acknowledgement](acknowledgements.md))',
  ),
  copyWindowMs: option(
    'INLET_COPY_WINDOW',
    '100',
    integer(1, 5_000),
    'for how long records gather that share an object of the copy store, in milliseconds; a node without other records in flight waits 10 at most. A longer window costs fewer requests',
  ),
  copyS3Endpoint: option(
    'INLET_COPY_S3_ENDPOINT',
    '',
    optional(serviceUrl),
    'URL of the S3 gateway that has the copies; empty: AWS, in INLET_COPY_REGION',
  ),
  copyRegion: option(
    'INLET_COPY_REGION',
    'us-east-1',
    matching(/^[a-z0-9-]{1,64}$/, 'must be the name of a region, such as us-east-1'),
    'region of that bucket',
  ),
  copyPathStyle: option(
    'INLET_COPY_PATH_STYLE',
    'true',
    choice(['true', 'false']),
    '`true`: the bucket is part of the path of a URL, as gateways expect it; `false`: of the host name',
  ),
  takeoverAfter: option(
    'INLET_TAKEOVER_AFTER',
    '',
    optional(duration(10, 86_400, '5m')),
    'after this time of silence another node of the region takes over a node with a copy store, and delivers its copies, such as `5m`; set it for control; empty: never, a person does it with `inlet node --adopt-copy`',
  ),
  copyAccessKeyId: option(
    'INLET_COPY_ACCESS_KEY_ID',
    '',
    optional(matching(/^\S{3,128}$/, 'must be the id of an access key')),
    'access key for that bucket alone; empty: the role of the machine, as the AWS SDK finds it',
  ),
  copySecretAccessKey: option('INLET_COPY_SECRET_ACCESS_KEY', '', optional(secret(8)), 'secret of that access key'),
} as const
