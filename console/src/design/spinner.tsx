import style from './spinner.module.css'

/** Decoration: what waits says so in words, or with `aria-busy`. */
export function Spinner() {
  return <span className={style.spinner} aria-hidden="true" />
}
