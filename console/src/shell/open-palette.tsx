/**
 * The command palette from the moment it is asked for.
 *
 * Law: no key that is pressed after Ctrl K is lost, however long the palette takes to load and to take the focus.
 */
import { type KeyboardEvent, lazy, Suspense, useState } from 'react'
import style from './palette.module.css'

const loading = () => import('./palette.tsx')
const Palette = lazy(() => loading().then(({ Palette: component }) => ({ default: component })))

/** Typed text, and whether Enter followed before there was anything to choose. */
type Typed = { readonly text: string; readonly isEntered: boolean }

const nothing: Typed = { text: '', isEntered: false }

type OpenPaletteProps = {
  readonly open: boolean
  readonly onClose: () => void
  /** Element that had the focus before. */
  readonly opener: Element | null
}

export function OpenPalette({ open, onClose, opener }: OpenPaletteProps) {
  const [typed, setTyped] = useState(nothing)
  const [hasFocus, setHasFocus] = useState(false)
  const type = (text: string) => setTyped({ text, isEntered: false })
  const close = () => {
    setTyped(nothing)
    setHasFocus(false)
    onClose()
    return opener instanceof HTMLElement ? opener : null
  }
  return (
    <>
      {open && !hasFocus && (
        <Beginning
          text={typed.text}
          onType={type}
          onEnter={() => setTyped({ ...typed, isEntered: true })}
          onClose={() => close()?.focus()}
        />
      )}
      <Suspense fallback={null}>
        <Palette open={open} typed={typed} onType={type} onFocus={() => setHasFocus(true)} onClose={close} opener={opener} />
      </Suspense>
    </>
  )
}

type BeginningProps = {
  readonly text: string
  readonly onType: (text: string) => void
  readonly onEnter: () => void
  readonly onClose: () => void
}

/** Looks like the palette, and takes the keys until the palette does. */
function Beginning({ text, onType, onEnter, onClose }: BeginningProps) {
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === 'Escape') onClose()
    if (event.key === 'Enter') onEnter()
    // Nothing else is there yet.
    if (event.key === 'Tab') event.preventDefault()
  }
  return (
    <>
      <div className={style.backdrop} onPointerDown={onClose} />
      <div className={style.popup}>
        <input
          className={style.input}
          placeholder="Go to…"
          aria-label="Go to, loading"
          value={text}
          // biome-ignore lint/a11y/noAutofocus: the palette was asked for by a key
          autoFocus
          onChange={({ target }) => onType(target.value)}
          onKeyDown={onKeyDown}
        />
      </div>
    </>
  )
}
