/**
 * The machine of a node whose place another one gets: it is cut off from control, or gone with its disk. The other one has a copy of the disk,
 * or restores what is in the copy store.
 */
import { copyFolder, writerName } from '#copies/copy-names.ts'
import type { Buckets } from './bucket.ts'
import type { SimulatedControl } from './control.ts'
import { hasRemovedCopies } from './copy-laws.ts'
import type { Faults } from './faults.ts'
import type { Kernel } from './kernel.ts'
import type { SimulatedNode } from './node.ts'

/**
 * `cutMs`: when it is cut off. `copyMs`: how long after that it is replaced. `isLate`: if copies are restored, both wait until the first of them are
 * removed.
 */
export type Loss = {
  readonly cutMs: number
  readonly copyMs: number
  readonly isLate: boolean
  readonly from: 'disk' | 'copies' | 'copies of a lost disk'
}

export type LostMachineOptions = {
  readonly loss: Loss
  readonly kernel: Kernel
  readonly faults: Faults
  readonly node: SimulatedNode
  readonly control: SimulatedControl
  readonly copyStore: Buckets | undefined
  /** `lostId` is set if the disk of the other machine is empty. */
  readonly replace: (lostId: string | undefined) => SimulatedNode
}

/** A machine needs seconds until control takes the one before for silent, more if control chooses, and restores then. */
const takeOverMs = 60_000
const chosenMs = 60_000
/** In many worlds a node has copies only after a while. */
const beforeMs = 10_000
const beforeLateMs = 30_000
/** A machine that is cut off may go on meanwhile. */
const afterwardsMs = 3_000

export class LostMachine {
  readonly #options: LostMachineOptions
  #isCut = false
  #other: SimulatedNode | undefined

  constructor(options: LostMachineOptions) {
    const { kernel, loss } = options
    this.#options = options
    if (loss.isLate && !this.#isDiskCopied) return
    kernel.after(loss.cutMs, 'cut off', () => this.#cut())
    kernel.after(loss.cutMs + loss.copyMs, 'adoption', () => this.#replace())
  }

  /** Undefined unless the other machine has only what is in the copy store. */
  get restored(): { readonly isDone: boolean } | undefined {
    return this.#other === undefined || this.#isDiskCopied ? undefined : { isDone: this.#other.hasTakenOver }
  }

  /** Goes on with the faults until another machine has the place, if copies are restored: most histories are over before. */
  async finish(isOver: () => boolean): Promise<void> {
    if (this.#isDiskCopied) return
    const { kernel, control, loss } = this.#options
    const isDue = () => (loss.isLate ? this.#hasRemovedCopies() : this.#hasCopies())
    await kernel.runUntil(() => isOver() || isDue(), loss.isLate ? beforeLateMs : beforeMs)
    this.#cut()
    this.#replace()
    if (this.#other === undefined) return
    const waitMs = takeOverMs + (control.choosesLost ? chosenMs : 0)
    await kernel.runUntil(() => isOver() || this.#other?.hasTakenOver === true, waitMs)
    await kernel.runUntil(isOver, afterwardsMs)
  }

  /** The node reaches control again. One that is replaced does so afterwards: control gives away a node that is silent. */
  endCut(): void {
    const { kernel, control, node } = this.#options
    if (this.restored === undefined || control.refuses(node.name)) control.cutOff.clear()
    else kernel.after(1_000, 'cut off', () => this.endCut())
  }

  get #isDiskCopied(): boolean {
    return this.#options.loss.from === 'disk'
  }

  #cut(): void {
    const { faults, control, node } = this.#options
    if (this.#isCut) return
    this.#isCut = true
    if (faults.next('cut off')) control.cutOff.add(node.name)
  }

  #replace(): void {
    const { loss, faults, node, replace } = this.#options
    if (this.#other !== undefined || (!this.#isDiskCopied && !this.#isRestorable()) || !faults.next('adoption')) return
    if (loss.from === 'copies of a lost disk') node.lose()
    this.#other = replace(this.#isDiskCopied ? undefined : this.#options.control.ids.get(node.name))
  }

  /** Control gives away a node that it does not hear of, and a person does not ask for one without copies. */
  #isRestorable(): boolean {
    const { node, control } = this.#options
    return control.cutOff.has(node.name) && this.#hasCopies()
  }

  /** A node writes to the copy store before it joins. It has no endpoints then, so nothing is lost, and control does not give away its id. */
  #hasCopies(): boolean {
    const { node, control, copyStore } = this.#options
    const id = control.ids.get(node.name)
    return id !== undefined && control.hasJoined(id) && copyStore?.objects.has(writerName(copyFolder('', id), 0)) === true
  }
  #hasRemovedCopies(): boolean {
    const { node, control, copyStore } = this.#options
    return copyStore !== undefined && hasRemovedCopies(copyStore, control.ids.get(node.name) ?? '')
  }
}
