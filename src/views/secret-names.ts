/** The secrets that the expressions of a view name. */
import { nearestName } from '#lib/nearest-name.ts'
import { SecretName } from '#model/secret.ts'
import { ConditionError, quoted } from './condition.ts'

export class SecretNames {
  readonly #known: readonly string[] | undefined
  readonly #used = new Set<string>()

  /** `known` are the secrets of the account; undefined where they are not known. */
  constructor(known?: readonly string[]) {
    this.#known = known
  }

  get used(): readonly string[] {
    return [...this.#used]
  }

  /** Throws ConditionError for a name that no secret has. */
  use(name: string): void {
    if (!SecretName.safeParse(name).success) {
      throw new ConditionError(
        `${quoted(name)} is not the name of a secret: one has lowercase letters, digits and underscores, and starts with a letter`,
        'unknown_name',
      )
    }
    if (this.#known?.includes(name) === false) {
      const near = nearestName(name, this.#known)
      const hint = near === undefined ? '' : `did you mean ${quoted(near)}? Otherwise `
      throw new ConditionError(
        `${quoted(name)} is not a secret of this account: ${hint}create it, such as with inlet secrets create ${name}`,
        'unknown_name',
      )
    }
    this.#used.add(name)
  }
}
