import type { Socket } from 'node:net'

/** Paused sockets by owner. Owners take turns, and so do the sockets of an owner. */
export class SocketQueue {
  /** The next turn goes to the first owner. */
  readonly #waiting = new Map<string, Set<Socket>>()

  get isEmpty(): boolean {
    return this.#waiting.size === 0
  }

  add(socket: Socket, owner: string): void {
    const sockets = this.#waiting.get(owner)
    if (sockets === undefined) this.#waiting.set(owner, new Set([socket]))
    else sockets.add(socket)
  }

  remove(socket: Socket, owner: string): void {
    const sockets = this.#waiting.get(owner)
    if (sockets?.delete(socket) === true && sockets.size === 0) this.#waiting.delete(owner)
  }

  /** Takes the socket that has waited longest from the owner whose turn it is. */
  next(): Socket | undefined {
    for (const [owner, sockets] of this.#waiting) {
      // To the end of the queue.
      this.#waiting.delete(owner)
      for (const socket of sockets) {
        sockets.delete(socket)
        if (sockets.size > 0) this.#waiting.set(owner, sockets)
        if (!socket.destroyed) return socket
      }
    }
    return undefined
  }
}
