"""Estimators in notebooks: scikit-learn's diagram, with a link and with what was learned."""

from __future__ import annotations

from typing import Any, ClassVar

from sklearn.base import BaseEstimator

_GUIDE = "https://github.com/smalto/smalto/blob/main/docs/guide/{page}"


class Documented(BaseEstimator):  # type: ignore[misc]
    """Abstract estimator whose diagram links to its page of the guide and ends with a report."""

    _doc_page: ClassVar[str] = "index.md"  # in the guide

    _doc_link_module = "smalto"
    _doc_link_template = _GUIDE

    def _doc_link_url_param_generator(self) -> dict[str, str]:
        return {"page": self._doc_page}

    def _get_params_html(self, deep: bool = True, doc_link: str = "") -> Any:
        return super()._get_params_html(deep, *_page_of(doc_link))

    def _get_fitted_attr_html(self, doc_link: str = "") -> Any:
        return super()._get_fitted_attr_html(*_page_of(doc_link))

    def _small_report(self) -> str:
        """Return what was learned as HTML; nothing before `fit`."""
        return ""

    def _repr_html_inner(self) -> str:
        return str(super()._repr_html_inner()) + self._small_report()

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        output: dict[str, str] = super()._repr_mimebundle_(**kwargs)
        if "text/html" in output:
            output["text/html"] += self._small_report()
        return output


def _page_of(doc_link: str) -> list[str]:
    """Return the link without its section, in whose place scikit-learn puts a parameter."""
    return [doc_link.partition("#")[0]] if doc_link else []
