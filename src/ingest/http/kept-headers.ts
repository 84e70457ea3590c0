import type { IncomingHttpHeaders } from 'node:http'
import { AppError } from '#errors.ts'
import { keptHeaderLimits } from '#model/limits.ts'

/**
 * Returns those headers of the request that the endpoint keeps; undefined if it has none of them. Throws AppError headers_too_large: one
 * that is cut or left out could no longer prove who sent the request.
 */
export function keptHeadersOf(
  headers: IncomingHttpHeaders,
  names: readonly string[],
): Readonly<Record<string, string>> | undefined {
  // Without a prototype every name is an ordinary key, including `__proto__`.
  const kept: Record<string, string> = Object.create(null)
  let bytes = 0
  for (const name of names) {
    const value = Object.hasOwn(headers, name) ? headers[name] : undefined
    if (value === undefined) continue
    kept[name] = typeof value === 'string' ? value : value.join(', ')
    bytes += name.length + kept[name].length
  }
  if (bytes > keptHeaderLimits.bytesMax) {
    const { bytesMax } = keptHeaderLimits
    throw new AppError(
      'headers_too_large',
      `the headers that the endpoint keeps have ${bytes} bytes, more than the limit of ${bytesMax}; send shorter ones, or change kept_headers of the endpoint`,
    )
  }
  return bytes === 0 ? undefined : kept
}
