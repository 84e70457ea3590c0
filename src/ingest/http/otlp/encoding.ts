import type { IncomingHttpHeaders } from 'node:http'

export type OtlpEncoding = 'json' | 'protobuf'

/** By Content-Type. The response has the encoding of the request. */
export const otlpTypes = { 'application/x-protobuf': 'protobuf', 'application/json': 'json' } as const satisfies Record<
  string,
  OtlpEncoding
>

/** Returns the encoding of a request and its response, also if its type is not accepted. */
export function otlpEncoding({ 'content-type': type = '' }: IncomingHttpHeaders): OtlpEncoding {
  return /^application\/x-protobuf *(;|$)/i.test(type) ? 'protobuf' : 'json'
}
