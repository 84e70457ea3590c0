/** Bounds what the bodies of one node take of the memory of control: reports may be large, and a credential may be in wrong hands. */
import type { FastifyRequest } from 'fastify'
import { AppError } from '#errors.ts'

export class BodyBudget {
  readonly #bytesMax: number
  /** By node, of requests that have not been answered. */
  readonly #bytes = new Map<string, number>()

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax
  }

  /** Returns a function that gives the bytes back. Throws unavailable. */
  take({ node, headers, routeOptions }: Pick<FastifyRequest, 'node' | 'headers' | 'routeOptions'>): () => void {
    const bytesMax = routeOptions.bodyLimit ?? 0
    const isChunked = headers['transfer-encoding'] !== undefined
    const bytes = isChunked ? bytesMax : Math.min(bytesMax, Number(headers['content-length'] ?? 0))
    const held = this.#bytes.get(node.id) ?? 0
    if (bytes > 0 && held + bytes > this.#bytesMax)
      throw new AppError('unavailable', 'this node sends too much at once', { retryAfterSeconds: 1 })
    this.#bytes.set(node.id, held + bytes)
    return () => {
      const left = (this.#bytes.get(node.id) ?? 0) - bytes
      if (left > 0) this.#bytes.set(node.id, left)
      else this.#bytes.delete(node.id)
    }
  }
}
