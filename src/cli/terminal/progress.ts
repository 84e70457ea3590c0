import type { WriteStream } from 'node:tty'

export type Output = Pick<WriteStream, 'write'> & { readonly isTTY?: boolean }

/** With the widest note, a line has fewer than 80 characters. */
const width = 24

/** A progress bar. Redraws on a terminal; elsewhere prints a line for every ten per cent. */
export class Progress {
  readonly #output: Output
  readonly #label: string
  readonly #total: number
  #lastPercent = -1

  constructor({ output, label, total }: { readonly output: Output; readonly label: string; readonly total: number }) {
    this.#output = output
    this.#label = label
    this.#total = total
  }

  show(done: number, note = ''): void {
    const share = this.#total === 0 ? 1 : Math.min(1, done / this.#total)
    const percent = Math.floor(share * 100)
    const bar = '█'.repeat(Math.round(share * width)).padEnd(width, '░')
    const line = `  ${this.#label.padEnd(10)} ${bar} ${String(percent).padStart(3)} %  ${note}`
    if (this.#output.isTTY === true) {
      this.#output.write(`\r${line}\u001b[K${share === 1 ? '\n' : ''}`)
    } else if (Math.floor(percent / 10) > Math.floor(this.#lastPercent / 10)) {
      this.#output.write(`${line}\n`)
    }
    this.#lastPercent = percent
  }
}
