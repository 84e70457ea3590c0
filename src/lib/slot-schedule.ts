/**
 * Schedules work on a fixed number of slots, fairly between tenants and between the members of a tenant. It reads no clock and starts
 * nothing: the same calls give the same decisions.
 *
 * Owns: who starts, who waits, and who has to return its slot. Does not own: the work (fair-slots.ts).
 * Law: no slot is free while a task waits. If a tenant waits while another one holds more than its share, the youngest task of the other
 * has to return its slot, but never its last one. The same holds inside a tenant. Work of low priority gets only slots that nobody else wants.
 * With a maximum lead, a tenant returns even its last slot to one that holds none and used less lately. The task that has run the longest
 * keeps its slot in any case, so that some task always progresses.
 */
import { assert } from './assert.ts'
import { findImbalance, findLead, nextShare, SlotShare } from './slot-shares.ts'

export type SlotOwner = { readonly tenant: string; readonly member: string; readonly weight: number }

/** `low`: only in slots that nobody else wants. */
export type SlotPriority = 'normal' | 'low'

export type SlotTask = SlotOwner & {
  readonly priority: SlotPriority
  /** Tasks of one member start in this order. */
  readonly order: number
}

export type SlotDecisions<Task> = {
  readonly started: readonly Task[]
  /** Must return their slots: end their work, and call `end`. */
  readonly preempted: readonly Task[]
}

class MemberShare<Task> extends SlotShare {
  /** By order. */
  readonly tasks: Task[] = []
}

class TenantShare<Task> extends SlotShare {
  readonly members = new Map<string, MemberShare<Task>>()
}

type Tenants<Task> = Map<string, TenantShare<Task>>

export type SlotScheduleOptions = {
  readonly capacity: number
  /** A tenant returns its last slot once it has used this much more slot time lately than one that waits. */
  readonly leadMsMax?: number
}

export class SlotSchedule<Task extends SlotTask> {
  readonly #capacity: number
  readonly #leadMsMax: number
  readonly #normal: Tenants<Task> = new Map()
  readonly #low: Tenants<Task> = new Map()
  /** In the order of their starts. Includes the preempted ones, whose work has not ended. */
  readonly #running: Task[] = []
  readonly #preempted = new Set<Task>()
  /** Each gets the next slot, because another task was preempted for it. */
  readonly #promised: Task[] = []

  constructor({ capacity, leadMsMax = Number.POSITIVE_INFINITY }: SlotScheduleOptions) {
    assert(capacity > 0, 'a schedule needs at least one slot')
    this.#capacity = capacity
    this.#leadMsMax = leadMsMax
  }

  /** Whether time alone may change the decisions: call `check` from time to time. */
  get dependsOnTime(): boolean {
    return this.#leadMsMax !== Number.POSITIVE_INFINITY && this.#normal.values().some(({ waiting }) => waiting > 0)
  }

  check(now: number): SlotDecisions<Task> {
    return this.#decide(now)
  }

  /** Adds a task that wants a slot. */
  request(task: Task, now: number): SlotDecisions<Task> {
    const [tenant, member] = this.#sharesOf(task)
    tenant.weight = task.weight
    this.#queue(task)
    tenant.waiting += 1
    member.waiting += 1
    return this.#decide(now)
  }

  /** The work of a task ended, or it no longer wants a slot. */
  end(task: Task, now: number): SlotDecisions<Task> {
    const shares = this.#sharesOf(task)
    if (remove(this.#running, task)) {
      const wasPreempted = this.#preempted.delete(task)
      for (const share of shares) {
        share.occupy(-1, now)
        if (!wasPreempted) share.held -= 1
      }
    } else {
      const wasPromised = remove(this.#promised, task)
      if (!wasPromised) remove(shares[1].tasks, task)
      for (const share of shares) share[wasPromised ? 'held' : 'waiting'] -= 1
    }
    const decisions = this.#decide(now)
    this.#forget(now)
    return decisions
  }

  #decide(now: number): SlotDecisions<Task> {
    const started: Task[] = []
    const preempted: Task[] = []
    const start = (task: Task): void => {
      for (const share of this.#sharesOf(task)) share.occupy(1, now)
      this.#running.push(task)
      started.push(task)
    }
    const preempt = (victim: Task, forTask: Task): void => {
      for (const share of this.#sharesOf(victim)) share.held -= 1
      this.#preempted.add(victim)
      preempted.push(victim)
      this.#promised.push(forTask)
    }
    const isFree = (): boolean => this.#running.length < this.#capacity
    for (let task = this.#promised[0]; task !== undefined && isFree(); task = this.#promised[0]) {
      this.#promised.shift()
      start(task)
    }
    for (;;) {
      const tenant = nextShare(this.#normal.values(), now)
      if (tenant === undefined) break
      const lent = isFree() ? undefined : this.#youngest(({ priority }) => priority === 'low')
      if (isFree()) start(this.#take(tenant, now))
      else if (lent !== undefined) preempt(lent, this.#take(tenant, now))
      else if (!this.#balance(now, preempt)) break
    }
    while (isFree()) {
      const tenant = nextShare(this.#low.values(), now)
      if (tenant === undefined) break
      start(this.#take(tenant, now))
    }
    return { started, preempted }
  }

  /** Moves one slot from a tenant to another, or inside a tenant. Returns whether there was a reason to. */
  #balance(now: number, preempt: (victim: Task, forTask: Task) => void): boolean {
    const between = findImbalance(this.#normal.values())
    if (between !== undefined) {
      const isFrom = (task: Task): boolean => this.#sharesOf(task)[0] === between.from
      if (this.#withdraw(isFrom)) {
        this.#promised.push(this.#take(between.to, now))
        return true
      }
      const victim = this.#youngest(isFrom)
      if (victim !== undefined) preempt(victim, this.#take(between.to, now))
      return victim !== undefined
    }
    for (const tenant of this.#normal.values()) {
      const inside = findImbalance(tenant.members.values())
      if (inside === undefined) continue
      const isFrom = (task: Task): boolean => this.#sharesOf(task)[1] === inside.from
      if (this.#withdraw(isFrom)) {
        this.#promised.push(this.#takeFrom(tenant, inside.to))
        return true
      }
      const victim = this.#youngest(isFrom)
      if (victim === undefined) continue
      preempt(victim, this.#takeFrom(tenant, inside.to))
      return true
    }
    const oldest = this.#running.find((task) => !this.#preempted.has(task))
    const victimOf = (tenant: TenantShare<Task>) =>
      this.#youngest((task) => task !== oldest && this.#sharesOf(task)[0] === tenant)
    const lead = findLead(this.#normal.values(), now, (tenant) => victimOf(tenant) !== undefined)
    const victim = lead !== undefined && lead.ms >= this.#leadMsMax ? victimOf(lead.from) : undefined
    if (lead === undefined || victim === undefined) return false
    preempt(victim, this.#take(lead.to, now))
    return true
  }

  /** Lets the last such task that was promised a slot wait again: that costs no work. Returns whether there was one. */
  #withdraw(matches: (task: Task) => boolean): boolean {
    const at = this.#promised.findLastIndex(matches)
    const [task] = at < 0 ? [] : this.#promised.splice(at, 1)
    if (task === undefined) return false
    for (const share of this.#sharesOf(task)) {
      share.held -= 1
      share.waiting += 1
    }
    this.#queue(task)
    return true
  }

  #queue(task: Task): void {
    const { tasks } = this.#sharesOf(task)[1]
    const at = tasks.findIndex(({ order }) => order > task.order)
    tasks.splice(at < 0 ? tasks.length : at, 0, task)
  }

  #youngest(matches: (task: Task) => boolean): Task | undefined {
    return this.#running.findLast((task) => !this.#preempted.has(task) && matches(task))
  }

  #take(tenant: TenantShare<Task>, now: number): Task {
    const member = nextShare(tenant.members.values(), now)
    assert(member !== undefined, 'a tenant waits for one of its members')
    return this.#takeFrom(tenant, member)
  }

  #takeFrom(tenant: TenantShare<Task>, member: MemberShare<Task>): Task {
    const task = member.tasks.shift()
    assert(task !== undefined, 'a member waits for one of its tasks')
    for (const share of [tenant, member]) {
      share.waiting -= 1
      share.held += 1
    }
    return task
  }

  #sharesOf(task: Task): readonly [TenantShare<Task>, MemberShare<Task>] {
    const tenants = task.priority === 'normal' ? this.#normal : this.#low
    const tenant = tenants.get(task.tenant) ?? new TenantShare<Task>(task.weight)
    tenants.set(task.tenant, tenant)
    const member = tenant.members.get(task.member) ?? new MemberShare<Task>(1)
    tenant.members.set(task.member, member)
    return [tenant, member]
  }

  /** Drops those that have used nothing lately. */
  #forget(now: number): void {
    for (const tenants of [this.#normal, this.#low]) {
      for (const [key, tenant] of tenants) {
        for (const [memberKey, member] of tenant.members) {
          if (member.canBeForgotten(now)) tenant.members.delete(memberKey)
        }
        if (tenant.canBeForgotten(now)) tenants.delete(key)
      }
    }
  }
}

function remove<Item>(items: Item[], item: Item): boolean {
  const at = items.indexOf(item)
  if (at < 0) return false
  items.splice(at, 1)
  return true
}
