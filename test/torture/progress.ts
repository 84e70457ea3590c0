/** Shows what is going on: one line in place on a terminal, elsewhere a plain line now and then. */
import type { WriteStream } from 'node:tty'
import type { RoundState } from './round.ts'
import { count } from './text.ts'

const terminalMs = 250
const plainMs = 5_000

export class Progress {
  readonly #output: WriteStream
  readonly #state: RoundState
  readonly #timer: NodeJS.Timeout
  readonly #startedAt = performance.now()
  /** Acknowledged records of the rounds that are done. */
  acknowledgedBefore = 0
  round = 0

  constructor(output: WriteStream, state: RoundState) {
    this.#output = output
    this.#state = state
    this.#timer = setInterval(() => this.#show(), output.isTTY ? terminalMs : plainMs)
  }

  /** Prints a line that stays. */
  print(text: string): void {
    this.#output.write(this.#output.isTTY ? `\r\u001b[K${text}\n` : `${text}\n`)
  }

  stop(): void {
    clearInterval(this.#timer)
    if (this.#output.isTTY) this.#output.write('\r\u001b[K')
  }

  #show(): void {
    const line = this.#line()
    if (this.#output.isTTY) this.#output.write(`\r${line.slice(0, this.#output.columns - 1)}\u001b[K`)
    else this.#output.write(`${line}\n`)
  }

  #line(): string {
    const { phase, rig, active, faults } = this.#state
    const elapsed = Math.floor((performance.now() - this.#startedAt) / 1000)
    const clock = `${Math.floor(elapsed / 60)}:${String(elapsed % 60).padStart(2, '0')}`
    const acknowledged = count(this.acknowledgedBefore + (rig?.ledger.acknowledgedRecords ?? 0))
    const kinds = [...faults].map(([kind, number]) => `${kind} ${number}`).join(', ')
    const total = [...faults.values()].reduce((sum, number) => sum + number, 0)
    const now = [...active, ...(rig?.processes.pausedOrDown ?? [])].join('; ')
    return `round ${this.round}  ${clock}  ${acknowledged} acknowledged  ${total} faults${total > 0 ? ` (${kinds})` : ''}  ${phase}${now === '' ? '' : `: ${now}`}`
  }
}
